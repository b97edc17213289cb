"""Opens an address in the user's browser without showing it to others: command lines are readable by everyone."""

from __future__ import annotations

import html
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager

from collector.files.new_folders import scratch_folder


@contextmanager
def opened_in_browser(address: str) -> Iterator[None]:
    """Open an address, by way of a file that only this user can read; the file is there until the end.

    Args:
        address: with the token; ``""``: nothing is opened.
    """
    if not address:
        yield
        return
    with scratch_folder() as folder:
        path = folder / "open.html"
        path.write_text(
            f'<!doctype html><meta charset=utf-8><meta http-equiv=refresh content="0; url={html.escape(address)}">'
            f'<a href="{html.escape(address)}">open</a>\n',
            encoding="utf-8",
        )
        threading.Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()
        yield
