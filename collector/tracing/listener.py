"""A process that can be traced from outside: `collector attach` starts, ends and dumps recordings while it runs.

>>> import collector
>>> collector.listen()

A thread of the native library sleeps on a unix socket, and answers processes of the same user alone. No signal is used,
and Python's lock is not needed: a program that hangs in a call can be recorded and dumped as well.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from collector.errors import CollectorError, error_of_kind
from collector.files.atomic_files import absolute, expanded
from collector.options import KINDS, TraceOptions, kind_names
from collector.sources.native import extension_error, search_roots
from collector.tracing.annotate import send_annotations_always
from collector.tracing.caller_warnings import warn_caller
from collector.tracing.recorded_process import RecordedProcess

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTEN_VARIABLE = "COLLECTOR_LISTEN"
"""``1``: a process that imports the collector listens; a path: the folder of the socket."""


def listen(
    folder: str | os.PathLike[str] | None = None,
    *,
    kinds: Iterable[str] = KINDS,
    budget: str | None = None,
    strict: bool = False,
) -> None:
    """Let `collector attach` control a recording of this process from now on.

    Nothing is recorded before a request, and the waiting thread costs nothing until then. A second call does nothing.
    `collector.annotate` names launches of such recordings, and `collector.trace` is a part of them.

    Args:
        folder: the socket's folder, for processes in other containers; only its owner may write there. None: it has
            a name outside the file system.
        kinds: the kinds of activity of the recordings, as in `collector.trace`.
        budget: the maximum cost of each recording, such as ``1%``, as in `collector.trace`.
        strict: raise a `collector.CollectorError` instead of warning.

    Raises:
        ValueError: a kind is unknown, or the budget is impossible.
        TypeError: a kind is not a name.
    """
    names = kind_names(kinds)
    options = TraceOptions(kinds=names, budget="" if budget is None else budget)
    try:
        if (error := extension_error()) is not None:
            raise CollectorError(
                f"the native extension cannot be loaded ({error})", "Install the package again with pip"
            )
        from collector import _native

        socket_folder = b"" if folder is None else os.fsencode(absolute(expanded(folder)))
        try:
            _native.listen(
                {
                    "kinds": list(options.kinds),
                    "search_roots": search_roots(),
                    "buffer_bytes": options.buffer_bytes,
                    "max_buffers": options.max_buffers,
                    "budget_millionths": options.budget_millionths,
                },
                socket_folder,
            )
        except _native.CaptureError as failure:
            raise error_of_kind(failure.kind, failure.cause, failure.remedy) from None
    except CollectorError as error:
        if strict:
            raise
        warn_caller(f"this process does not listen: {error}")
        return
    send_annotations_always(RecordedProcess())


def listen_as_asked() -> None:
    """Listen if the variable `LISTEN_VARIABLE` requests it."""
    asked = os.environ.get(LISTEN_VARIABLE, "")
    listen(asked if asked.startswith("/") else None)
