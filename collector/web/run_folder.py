"""The files of a folder that may be traces, each under an id; no request names a path."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.files.dataset_files import SCHEMA_FILE
from collector.files.distinct_names import distinct_names
from collector.files.nested_files import found_below
from collector.files.path_kinds import is_folder
from collector.formats.named_steps import NamedSteps, is_dataset, named_steps
from collector.recording.journal_segments import segments_of
from collector.text.natural_order import natural_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_RUNS = 5000
"""Files beyond these are left out and counted: those that cannot be opened first, then the last ones by name."""
FRESH_S = 0.5
"""The age after which a requested list is made again."""
ID = re.compile("[0-9a-f]{16}")
"""The form of an id."""
PROFILE = "profile of ProfileContext"
"""The kind of the files that `collector.profiler.context.ProfileContext` writes."""
_PROFILE_NAME = re.compile(r"profile_-?[0-9]+")
_LEADS_OUT = "a link that leads out of the folder or nowhere"
_SPECIAL = {
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


@dataclass(frozen=True)
class Run:
    """A file of the list, a journal in segments, or a step of a dataset."""

    id: str
    """Derived from the name; the same whenever the folder is listed."""
    name: str
    """The path within the folder; of a file that was given by itself its name. If several have this name, the folders
    that tell them apart come first."""
    path: Path
    num_bytes: int = 0
    modified_ns: int = 0
    kind: str = ""
    """Format of the file, by its first bytes."""
    refused: str = ""
    """The reason why it cannot be opened; ``""`` if none is known."""
    files: tuple[Path, ...] = ()
    """The files that are read for it: the file itself, segments, or those of a dataset that have rows of a step."""

    @property
    def version(self) -> str:
        """A text that differs whenever the file has changed."""
        return f"{self.num_bytes:x}-{self.modified_ns:x}"


@dataclass(frozen=True)
class Runs:
    """The list at some time."""

    by_id: dict[str, Run]
    """In the order of their names."""
    left_out: int
    """Files that are not among them."""


class RunFolder:
    """Folders and files, listed anew when they change; links that lead out of a folder are not followed."""

    def __init__(self, given: Sequence[Path], profiles: Iterable[Path] = ()) -> None:
        """Take the files and folders that a user gave.

        Args:
            given: folders and files.
            profiles: files that are profiles of ProfileContext, whatever they are called.

        Raises:
            collector.CollectorError: one of them is not there or cannot be read.
        """
        self._profiles = [each.expanduser() for each in profiles]
        self._given = [each.expanduser() for each in given]
        for path in (*self._given, *self._profiles):
            if named_steps(path) is not None:
                continue
            try:
                if path.is_dir():
                    with os.scandir(path):
                        pass
                else:
                    with path.open("rb"):
                        pass
            except OSError as error:
                raise CollectorError(f"{path}: {error.strerror or error}") from error
        self._known: dict[Path, tuple[str, str, str]] = {}
        """Path -> version, kind and reason against it, as its first bytes say."""
        self._steps: dict[tuple[NamedSteps, Path], tuple[object, list[Run]]] = {}
        """Datasets, or parts of them, in a folder -> their version and their steps."""
        self._lock = threading.Lock()
        self._listed = Runs({}, 0)
        self._listed_at = -FRESH_S

    def runs(self) -> Runs:
        """The list; not older than `FRESH_S`."""
        with self._lock:
            if time.monotonic() - self._listed_at >= FRESH_S:
                self._listed = self._list()
                self._listed_at = time.monotonic()
            return self._listed

    def find(self, id_: str) -> Run | None:
        """The run with an id; None if there is none."""
        return self.runs().by_id.get(id_)

    def is_inside(self, run: Run) -> bool:
        """Whether the file is still where it was listed: not replaced by a link that leads elsewhere."""
        given = next((each for each in self._given if each == run.path or each in run.path.parents), run.path)
        if (named := named_steps(given)) is not None:
            given = named.folder
        files = (*run.files, *_segments_of(run.path))
        return not is_folder(given) or all(_leads_inside(path, given) for path in files)

    def _list(self) -> Runs:
        found: dict[str, Run] = {}
        for path in self._profiles:
            _add(found, self._run(path, path.name, is_profile=True))
        for given in self._given:
            if (named := named_steps(given)) is not None:
                for run in self._steps_of(named, named.folder):
                    _add(found, run)
            elif not is_folder(given):
                _add(found, self._run(given, given.name))
            elif _segments_of(given):
                _add(found, self._run(given, given.resolve().name))
            else:
                for run in self._walk(given):
                    _add(found, run)
        listed = list(found.values())
        names = distinct_names([run.name for run in listed], [run.path for run in listed])
        listed = [run if run.name == name else replace(run, name=name) for run, name in zip(listed, names, strict=True)]
        ordered = sorted(listed, key=lambda run: (bool(run.refused), natural_order(run.name)))
        self._steps = {place: known for place, known in self._steps.items() if is_dataset(place[0].folder)}
        self._known = {run.path: known for run in ordered if (known := self._known.get(run.path)) is not None}
        return Runs({run.id: run for run in ordered[:MOST_RUNS]}, max(len(ordered) - MOST_RUNS, 0))

    def _walk(self, root: Path) -> Iterator[Run]:
        for path, unreadable in found_below(root, lambda below: bool(_segments_of(below)) or is_dataset(below)):
            name = path.relative_to(root).as_posix()
            if unreadable:
                yield _refused(path, name, f"a folder that cannot be read: {unreadable}")
            elif path.is_symlink() and not _leads_inside(path, root):
                yield _refused(path, name, _LEADS_OUT)
            elif path.is_symlink() and path.is_dir():
                continue
            elif is_dataset(path):
                yield from self._steps_of(NamedSteps(path), root)
            else:
                yield self._run(path, name)

    def _steps_of(self, named: NamedSteps, root: Path) -> list[Run]:
        """The steps of a dataset, which are listed again after it has changed; or one row, with the reason for none."""
        place = "" if named.folder == root else named.folder.relative_to(root).as_posix()
        name = place or named.name or named.folder.resolve().name
        try:
            files = sorted((named.folder / "steps").rglob("*.parquet"))
            abouts = [(path, path.stat()) for path in (named.folder / SCHEMA_FILE, *files)]
        except OSError as error:
            return [_refused(named.path, name, str(error.strerror))]
        version = [(path, about.st_size, about.st_mtime_ns) for path, about in abouts]
        known, steps = self._steps.get((named, root), (None, []))
        if known == version:
            return steps
        try:
            steps = _listed_steps(named, root, place)
        except OSError as error:  # it is being changed
            return [_refused(named.path, name, str(error.strerror))]
        except CollectorError as error:
            steps = [_refused(named.path, name, reason_of(error, named.folder))]
        self._steps[named, root] = version, steps
        return steps

    def _run(self, path: Path, name: str, *, is_profile: bool = False) -> Run:
        segments = _segments_of(path)
        if not all(_leads_inside(segment, path) for segment in segments):
            return _refused(path, name, _LEADS_OUT)
        try:
            abouts = [each.stat() for each in segments or [path]]
        except OSError as error:
            return _refused(path, name, str(error.strerror))
        for is_such, what in _SPECIAL.items():
            if any(is_such(about.st_mode) for about in abouts):
                return _refused(path, name, f"{what}, not a file")
        num_bytes, modified_ns = sum(about.st_size for about in abouts), max(about.st_mtime_ns for about in abouts)
        run = Run(_id(path), name, path, num_bytes, modified_ns)
        version, kind, refused = self._known.get(path, ("", "", ""))
        if version != run.version:
            is_profile = is_profile or _PROFILE_NAME.fullmatch(path.name) is not None
            if is_profile and num_bytes and not segments:
                kind, refused = PROFILE, ""
            else:
                looks = [first_look(each) for each in segments or [path]]
                kind, refused = next((look for look in looks if not look[1]), looks[0])
            self._known[path] = run.version, kind, refused
        return Run(run.id, name, path, num_bytes, modified_ns, kind, refused, (path, *segments))


def _listed_steps(named: NamedSteps, root: Path, place: str) -> list[Run]:
    """The steps of a dataset; a step has its share of the size of files that hold several.

    Raises:
        OSError: a file of the dataset has gone.
        collector.CollectorError: the dataset cannot be read, or has none of these steps.
    """
    from collector.dataset.dataset import Dataset
    from collector.dataset.steps_by_name import keys_of

    dataset = Dataset(named.folder, run=named.run, rank=named.rank)
    known = _abouts_inside((path for parts in dataset.files.by_table.values() for path in parts.values()), root)
    runs = []
    for key in keys_of(dataset, named):
        step = NamedSteps(named.folder, *key)
        name = f"{place}/{step.name}" if place else step.name
        files, num_steps = dataset.files_of(key)
        abouts = [about for path in files if (about := known[path]) is not None]
        if len(abouts) < len(files):
            runs.append(_refused(step.path, name, _LEADS_OUT))
            continue
        num_bytes, modified_ns = sum(each.st_size for each in abouts), max(each.st_mtime_ns for each in abouts)
        kind = "step of a dataset"
        runs.append(Run(_id(step.path), name, step.path, num_bytes // num_steps, modified_ns, kind, files=tuple(files)))
    return runs


def _add(found: dict[str, Run], run: Run) -> None:
    if run.path not in (each.path for each in (found.get(run.id),) if each is not None):
        found[run.id] = run


def _id(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]


def _refused(path: Path, name: str, why: str) -> Run:
    return Run(_id(path), name, path, refused=why)


def _segments_of(path: Path) -> list[Path]:
    """The segments of a journal; of another file or folder none."""
    with contextlib.suppress(OSError):
        return segments_of(path) if path.is_dir() else []
    return []


def _abouts_inside(paths: Iterable[Path], root: Path) -> dict[Path, os.stat_result | None]:
    """The size and time of each file; None: a link leads out of the folder ``root``.

    Links are followed once for each folder, because a dataset may have thousands of files in a few folders.

    Raises:
        OSError: a file has gone.
    """
    are_inside: dict[Path, bool] = {}
    found: dict[Path, os.stat_result | None] = {}
    for path in paths:
        folder = path.parent
        if folder not in are_inside:
            are_inside[folder] = _leads_inside(folder, root)
        about = path.lstat()
        is_inside = are_inside[folder]
        if is_inside and stat.S_ISLNK(about.st_mode):
            about, is_inside = path.stat(), _leads_inside(path, root)
        found[path] = about if is_inside else None
    return found


def _leads_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        return False


def first_look(path: Path) -> tuple[str, str]:
    """The kind of a file by its first bytes, and the reason why it cannot be read; one of both is ``""``."""
    from collector.formats.file_content import content_of
    from collector.formats.registry import check_head, likely_format, readable_sentence, refuse_foreign

    try:
        content = content_of(path, check_head, readable_sentence())
        refuse_foreign(content.head, path)
        if content.is_blank:
            return "", "the file is empty"
        check_head(content.head, path, content.num_bytes)
        return likely_format(content.head, path), ""
    except CollectorError as error:
        return "", reason_of(error, path)


def reason_of(error: CollectorError, path: Path) -> str:
    """The reason that an error states, without the path of the file."""
    return error.cause.removeprefix(f"{path}: ").replace(str(path), path.name)
