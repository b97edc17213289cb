"""Folders that are removed at the end of a block."""

from __future__ import annotations

import concurrent.futures
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from collector.errors import OutputError
from collector.files.new_folders import scratch_folder


class Interrupt:
    """Raises at the ``at``-th line that a thread runs, whoever's it is; None: nowhere. Counts the lines."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.count = at, 0

    def __call__(self, _frame: FrameType, event: str, _: Any) -> Interrupt:
        if event == "line":
            if self.count == self.at:
                self.count += 1
                raise KeyboardInterrupt
            self.count += 1
        return self

    def run(self) -> bool:
        """Use a folder in a thread of its own; return whether that was interrupted."""
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            return threads.submit(self._run).result()

    def _run(self) -> bool:
        sys.settrace(self)
        try:
            _use_folder()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


def _use_folder() -> None:
    with scratch_folder() as folder:
        (folder / "part").mkdir()
        (folder / "part" / "file").touch()


@pytest.fixture
def parent(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_scratch_folder_is_empty_private_and_removed_with_its_files(parent):
    with scratch_folder() as folder:
        assert folder.parent == parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []
        (folder / "file").touch()
    assert list(parent.iterdir()) == []


def test_an_interrupt_at_any_line_leaves_no_scratch_folder(parent):
    assert not Interrupt().run()  # the first use runs more lines
    uninterrupted = Interrupt()
    assert not uninterrupted.run()
    assert uninterrupted.count > 50
    for at in range(uninterrupted.count):
        Interrupt(at).run()
        assert list(parent.iterdir()) == [], at


def test_a_folder_that_cannot_be_made_names_the_cause(parent, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(parent / "missing"))
    with pytest.raises(OutputError, match=r"cannot make a folder in .*missing"), scratch_folder():
        pass
