"""The hosts and origins to which the server of the page answers."""

from __future__ import annotations

import asyncio

import pytest

from collector.web.request_guard import RequestGuard


async def inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


def status_of(port, path="/", **headers):
    """The status of the answer to a request."""
    sent = []

    async def send(message):
        sent.append(message)

    guard = RequestGuard(inner, port=port, token="t", open_paths=["/"])
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": named}
    asyncio.run(guard(scope, None, send))
    return sent[0]["status"]


@pytest.mark.parametrize(
    ("port", "host", "status"),
    [
        (80, "127.0.0.1", 200),
        (80, "localhost:80", 200),
        (80, "example.org", 421),
        (8080, "127.0.0.1", 421),
        (8080, "[::1]:8080", 200),
    ],
)
def test_browsers_leave_the_port_of_http_out(port, host, status):
    assert status_of(port, host=host, origin=f"http://{host}") == status


@pytest.mark.parametrize(
    "other",
    ["plain=1", 'prefs={"theme":"dark"}', "list=[1,2]", "a b=c", "x[y]=1", "hello", "é=è", "=", '"', "collector-8=t"],
)
def test_cookies_of_other_programs_do_not_hide_the_own_one(other):
    for cookie in (f"{other}; collector-80=t", f"collector-80=t; {other}", f"{other};collector-80=t;{other}"):
        assert status_of(80, "/data", host="localhost", cookie=cookie) == 200
    for cookie in (other, f"{other}; collector-80=T", f"{other}; xcollector-80=t", f"{other}; collector-80"):
        assert status_of(80, "/data", host="localhost", cookie=cookie) == 401
