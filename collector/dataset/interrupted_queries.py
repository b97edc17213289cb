"""Queries of DuckDB that Ctrl-C, or the exception of another signal's handler, ends."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_T = TypeVar("_T")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise an interrupt as what it is: DuckDB ends a query at Ctrl-C with a ``RuntimeError``."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def answered_in_thread(connection: Any, ask: Callable[[], _T]) -> _T:
    """What ``ask``, which runs a query, returns; an exception that interrupts this thread meanwhile ends the query.

    The query runs in another thread: in the main thread DuckDB 2.0 notices Ctrl-C, but waits for the end of the query.
    """
    with ThreadPoolExecutor(1, "collector-query") as pool:
        pool.submit(int).result()  # the thread has started: an interrupted start would leave one that nobody knows
        try:
            query = pool.submit(ask)
            while not query.done():  # a signal that arrives in a third thread does not end a wait
                wait([query], timeout=0.1)
        except BaseException:
            after_query = pool.submit(int)
            while not after_query.done():  # the query may not have begun at the first time
                connection.interrupt()
                wait([after_query], timeout=0.1)
            raise
        return query.result()
