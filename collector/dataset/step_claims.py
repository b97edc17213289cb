"""The numbers of one rank's steps, which several writers at the same time divide among each other.

A writer claims the numbers of a part before the part's files get their names: ``.part-<first step>.claim``, beside the
part's file of ``steps``, holds the number after the last. A new name is exclusive on network file systems, too, where
locks may not be. So the holder of a claim is the only one that makes or deletes files of a part with this first step.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from typing import TYPE_CHECKING

from collector.dataset.dataset_folder import Part, first_step_of, link_exclusively, path_of, tables, temporary_path
from collector.dataset.dataset_tables import RANKS, RUNS, STEPS
from collector.files.locked_files import unlock
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_ABANDONED_AFTER_S = 86_400
"""The time in s after which an unlocked claim or unfinished file counts as left by a killed writer."""
_CLAIM, _UNFINISHED = ".claim", ".part"
_CLAIM_NAME = re.compile(r"\.part-(\d{1,19})\.claim")


class StepClaims:
    """The numbers of the steps of one rank of a run that are in a dataset, and those that writers have claimed."""

    def __init__(self, folder: Path, run: str, rank: int) -> None:
        """Take the folder, the run and the rank; nothing is claimed yet."""
        self._places = {name: path_of(folder, table, Part(run, rank, 0)).parent for name, table in tables().items()}
        self._of_steps = self._places[STEPS.name]
        self._stops: dict[int, int] = {}

    def claim_path(self, first_step: int) -> Path:
        """The file that claims the numbers of a part."""
        return self._of_steps / f".part-{first_step}{_CLAIM}"

    def last_written(self) -> int:
        """The number of the last step in the dataset, or -1."""
        return max((self._stop_of(first) for first in self._written()[-1:]), default=0) - 1

    def next_free(self) -> int:
        """The number after all that are in the dataset or claimed."""
        return max(self.last_written() + 1, *(steps.stop for steps in self._claimed().values() if steps), 0)

    def are_written(self, steps: range) -> bool:
        """Whether one of the numbers is in the dataset."""
        before = [first for first in self._written() if first < steps.stop]
        return any(self._stop_of(first) > steps.start for first in before[-1:])

    @contextlib.contextmanager
    def claim(self, steps: range) -> Iterator[bool]:
        """Claim numbers for the duration of a block, which gets False if one of them is another writer's."""
        with self._held(steps) as is_held:  # other claims are looked at first: what they added is there when they end
            yield is_held and not self._are_claimed(steps) and not self.are_written(steps)

    def delete_files(self, first_step: int) -> None:
        """Delete the files that a killed writer left of a part; only the holder of its claim may do so."""
        for name, place in self._places.items():
            if name not in (RUNS.name, RANKS.name, STEPS.name):
                (place / f"part-{first_step}.parquet").unlink(missing_ok=True)

    def delete_abandoned(self) -> None:
        """Delete the files that killed writers of this rank left."""
        found: set[int] = set()
        for name, place in self._places.items():
            files = _names_in(place)
            for file in files:
                if file.startswith(".part-") and file.endswith((_CLAIM, _UNFINISHED)):
                    self._delete_if_abandoned(place / file)
            if name not in (RUNS.name, RANKS.name):
                found.update(_first_steps(files))
        for first in found.difference(self._written()):
            with self._held(range(first, first)) as is_held:
                if is_held and first not in self._written():
                    self.delete_files(first)

    def _delete_if_abandoned(self, path: Path) -> None:
        if not _is_abandoned(path) or is_locked(self._of_steps / path.name):
            return
        if path.suffix == _UNFINISHED:
            path.unlink(missing_ok=True)
            return
        aside = temporary_path(path)
        with contextlib.suppress(FileNotFoundError):  # another process does the same
            path.rename(aside)
            if not _is_abandoned(aside):  # a new claim, as another process has deleted the abandoned one
                link_exclusively(aside, path)
            aside.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _held(self, steps: range) -> Iterator[bool]:
        """Hold the claim of a part, if it is free."""
        path = self.claim_path(steps.start)
        temporary = temporary_path(path)
        with contextlib.ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            temporary.write_text(str(steps.stop), "ascii")
            is_held = link_exclusively(temporary, path)
            if is_held:
                undo.callback(path.unlink, missing_ok=True)
            yield is_held

    def _are_claimed(self, steps: range) -> bool:
        """Whether one of the numbers belongs to another claim than the one that begins with them."""
        others = (other for first, other in self._claimed().items() if first != steps.start)
        return any(max(other.start, steps.start) < min(other.stop, steps.stop) for other in others)

    def _claimed(self) -> dict[int, range]:
        """The numbers of each claim, by the first; one that only guards the deletion of files has none."""
        found = {}
        for name in _names_in(self._of_steps):
            if claim := _CLAIM_NAME.fullmatch(name):
                with contextlib.suppress(FileNotFoundError):  # it was given up meanwhile
                    found[int(claim[1])] = range(int(claim[1]), int((self._of_steps / name).read_text("ascii")))
        return found

    def _written(self) -> list[int]:
        """The first steps of the parts in the dataset, in order."""
        return sorted(_first_steps(_names_in(self._of_steps)))

    def _stop_of(self, first_step: int) -> int:
        """The number after the last step of a part; those of another part are all smaller, or all larger."""
        if first_step not in self._stops:
            path = self._of_steps / f"part-{first_step}.parquet"
            rows = optional_package("pyarrow.parquet").read_table(path, columns=["step"], partitioning=None)
            self._stops[first_step] = 1 + max(rows["step"].to_pylist())
        return self._stops[first_step]


class AliveWriter:
    """Shows others that the process which writes a file is alive, if the file system can tell, until it is released."""

    def __init__(self, path: Path) -> None:
        """Lock the file."""
        self._number = os.open(path, os.O_RDWR)
        with contextlib.suppress(OSError):  # such as a network file system without locks
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Unlock the file."""
        if self._number >= 0:
            unlock(self._number)
            number, self._number = self._number, -1
            os.close(number)


def is_locked(path: Path) -> bool:
    """Whether an `AliveWriter` holds a file."""
    try:
        number = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        unlock(number)
        os.close(number)
    return False


def _names_in(place: Path) -> list[str]:
    try:
        with os.scandir(place) as entries:
            return [each.name for each in entries]
    except FileNotFoundError:
        return []


def _first_steps(names: Iterable[str]) -> Iterator[int]:
    return (first for name in names if (first := first_step_of(name)) is not None)


def _is_abandoned(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _ABANDONED_AFTER_S
    except OSError:
        return False
