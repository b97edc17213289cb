"""Sockets that only programs on this machine can reach."""

from __future__ import annotations

import errno
import socket

from collector.errors import CollectorError


def listening_sockets(port: int) -> tuple[list[socket.socket], int]:
    """Sockets at 127.0.0.1 and, where it is there, [::1], with the same port; and this port.

    Args:
        port: 0: a free one.

    Raises:
        collector.CollectorError: the port cannot be had.
    """
    try:
        first = socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be had: {error.strerror}"
        raise CollectorError(
            f"port {port} {why}", "Give another port with --port, or omit the option to use a free one"
        ) from error
    port = first.getsockname()[1]
    try:
        second = socket.create_server(("::1", port), family=socket.AF_INET6, backlog=64)
    except OSError:  # no IPv6 here, or another program has the port there: the first address is enough
        return [first], port
    return [first, second], port
