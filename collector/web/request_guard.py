"""Answers only requests from this machine's browser that read and have the server's token."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_HEADER = "x-collector-token"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names by which a browser reaches the server. A page at another name has pointed it here (DNS rebinding)."""
_METHODS = (b"GET", b"HEAD")
_OWN_SITES = ("same-origin", "none")
"""``Sec-Fetch-Site`` of the page's own requests, and of an address that a person has typed."""
_HIDDEN_STEPS = re.compile(rb"%(?:2f|5c|00|25)|\\|\0|/\.{1,2}(?:/|$)", re.IGNORECASE)
"""Parts of a path that do not occur in any address of this server."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of every response without its own."""
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


_HTTP_PORT = 80


class RequestGuard:
    """An ASGI application around another one."""

    def __init__(self, inner: Application, *, port: int, token: str, open_paths: Iterable[str]) -> None:
        """Guard an application.

        Args:
            inner: the application that answers the requests that pass.
            port: the port of the server.
            token: the token that requests must have, in a header or as a cookie.
            open_paths: the paths that are answered without the token, because they hold nothing about the runs.
        """
        self._inner = inner
        self._hosts = {f"{name}:{port}" for name in LOOPBACK}
        if port == _HTTP_PORT:
            self._hosts |= set(LOOPBACK)  # browsers leave this port out of Host and Origin
        self._token = token
        self._open = frozenset(open_paths)
        self.cookie = f"collector-{port}"
        """The name of the cookie; browsers send the cookies of one port to all others."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            raise ValueError(f"the server answers no {scope['type']}")
        status, why = self._refusal(scope)
        if status:
            await _answer(send, status, why)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                own = ((name.encode(), value.encode()) for name, value in _HEADERS.items())
                message["headers"] = [*message["headers"], *(each for each in own if each[0] not in given)]
            await send(message)

        await self._inner(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        """The status and the reason of a refusal; 0 where there is none."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        path = scope["path"]
        if scope["method"].encode() not in _METHODS:
            return 405, "this server is read-only: GET and HEAD"
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return 421, "this server answers to the names of this machine alone: 127.0.0.1, localhost, [::1]"
        if any(origin != f"http://{host[0]}" for origin in headers.get("origin", [])):
            return 403, "a page of another origin may not ask"
        is_entry = path == "/" and headers.get("sec-fetch-mode") == [
            "navigate"
        ]  # a link to the page, which holds nothing
        if not is_entry and any(site not in _OWN_SITES for site in headers.get("sec-fetch-site", [])):
            return 403, "a page of another site may not ask"
        if _HIDDEN_STEPS.search(scope.get("raw_path") or path.encode("utf-8", "surrogateescape")):
            return 404, "there is no such address"
        if path not in self._open and not self._has_token(headers):
            return 401, "the token is missing or is that of an earlier start: open the address that the command printed"
        return 0, ""

    def _has_token(self, headers: dict[str, list[str]]) -> bool:
        given = headers.get(TOKEN_HEADER, [])
        for pair in ";".join(headers.get("cookie", [])).split(";"):  # of others' cookies some are malformed
            name, _, value = pair.strip(" \t").partition("=")
            if name == self.cookie:
                given = [*given, value]
        return any(hmac.compare_digest(each.encode(), self._token.encode()) for each in given)


async def _answer(send: Send, status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    headers = {**_HEADERS, "content-type": "application/json", "content-length": str(len(body))}
    if status == 405:
        headers["allow"] = "GET, HEAD"
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
