"""The hosts and origins to which the server of the page answers."""

from __future__ import annotations

import asyncio

import pytest

from collector.web.request_guard import RequestGuard


async def inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


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
    sent = []

    async def send(message):
        sent.append(message)

    guard = RequestGuard(inner, port=port, token="t", open_paths=["/"])
    headers = [(b"host", host.encode()), (b"origin", f"http://{host}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "headers": headers}
    asyncio.run(guard(scope, None, send))
    assert sent[0]["status"] == status
