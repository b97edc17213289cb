"""The artifacts of tests, as a run's options ask for them: a trace and a page of each, and the dataset of all."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from collector.errors import CollectorError, in_words
from collector.testing.plugin.run_dataset import RunDataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from collector.recording.recording import Recording
    from collector.testing.plugin.plugin_options import PluginOptions
    from collector.testing.plugin.running_test import Running

Arguments = ParamSpec("Arguments")

_SUFFIX = ".trace.json"
_LONGEST = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9_.=-]+")


class Artifacts:
    """Writes what the options ask for when a test has ended; problems are in the test's next report."""

    def __init__(self, options: PluginOptions) -> None:
        """Nothing is written yet."""
        self._options = options
        self._kept: dict[str, int] = {}
        """Path of a kept trace -> device time in ns, where the slowest tests are kept."""
        self._dataset = None if options.dataset is None else RunDataset(options.dataset)

    def write(self, running: Running) -> None:
        """Write the artifacts of a test. Pages and the dataset have the tests that used the GPU."""
        if self._options.folder is not None and running.recordings:
            self._keep_trace(running, running.recordings, self._options.folder)
        worked = running.recordings_with_work()
        if self._options.pages is not None and worked:
            self._write_page(running, worked, self._options.pages)
        if self._dataset is not None:
            self._add_to_dataset(running, worked, self._dataset)

    def close(self) -> str | None:
        """Finish the dataset; return the error, or None."""
        return None if self._dataset is None else _problem_in(self._dataset.close)

    def _keep_trace(self, running: Running, recordings: Sequence[Recording], folder: Path) -> None:
        keep = self._options.keep
        if keep.rule == "failed" and not running.failed:
            return
        path = folder / f"{safe_name(running.item.nodeid)}{_SUFFIX}"
        if keep.rule == "slow":
            self._kept[str(path)] = sum(phase.figures.device_time_ns for phase in running.phases.values())
            stay = longest(((ns, name) for name, ns in self._kept.items()), keep.count)
            for name in self._kept.keys() - stay:
                del self._kept[name]
                Path(name).unlink(missing_ok=True)
            if str(path) not in stay:
                return
        problem = _problem_in(_save_trace, recordings, path)
        if problem is None:
            running.notes["trace"] = str(path)
        else:
            running.note("problems", f"traces could not be kept in {folder}: {problem}")

    def _write_page(self, running: Running, recordings: Sequence[tuple[str, Recording]], folder: Path) -> None:
        name = f"{safe_name(running.item.nodeid)}.html"
        problem = _problem_in(_save_page, recordings, folder / name, running.item.nodeid)
        if problem is None:
            running.notes["page"] = name
        else:
            running.note("problems", f"pages could not be written to {folder}: {problem}")

    @staticmethod
    def _add_to_dataset(running: Running, recordings: Sequence[tuple[str, Recording]], dataset: RunDataset) -> None:
        problem = _problem_in(dataset.add, running.item.nodeid, recordings)
        if problem is None:
            running.notes["in_dataset"] = bool(recordings)
        else:
            running.note("problems", f"tests could not be added to the dataset: {problem}")


def safe_name(nodeid: str) -> str:
    """A unique, readable and portable file name for a test, without suffix, of at most 129 characters.

    Letters, digits, ``_``, ``.``, ``=`` and ``-`` stay, other characters become ``-``. If this or the length could give
    two tests the same name, nine characters of a digest of the node id are added.
    """
    plain = nodeid.replace("::", "--").replace("/", "-")
    name = _UNSAFE.sub("-", plain).strip("-.")
    if name == plain and "-" not in nodeid and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(nodeid.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{name[:_LONGEST].rstrip('-.')}-{digest}"


def writable_folder(folder: Path) -> str | None:
    """Create ``folder`` and return the error of that or of writing into it; None if there is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except FileExistsError:
        return f"{folder} is not a folder"
    except OSError as error:
        return f"cannot write to the folder {folder}: {error.strerror or error}"
    return None


def _problem_in(
    write: Callable[Arguments, str | None], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> str | None:
    """Call ``write``; return the error that it returns or, of an unexpected kind, raises: the other tests run on."""
    try:
        return write(*args, **kwargs)
    except Exception as error:  # a test may have replaced functions and modules that are needed
        return in_words(error)


def _save_trace(recordings: Sequence[Recording], path: Path) -> str | None:
    """Write a test's trace, its recordings in order of time, to ``path``.

    Returns:
        The error without the path, which differs, or None.
    """
    from collector.recording.joined_captures import joined_captures
    from collector.recording.recording import Recording

    recording = recordings[0]
    if len(recordings) > 1:
        captures = [each.to_capture() for each in recordings]
        recording = Recording.from_capture(joined_captures(captures, one_process=True))
    try:
        recording.save(path)
    except (CollectorError, OSError) as error:
        return _cause_of(error)
    return None


def _save_page(parts: Sequence[tuple[str, Recording]], path: Path, title: str) -> str | None:
    """Write a page about a test's recordings, each with its name, to ``path``; return the error, or None."""
    from collector.formats.step import Step
    from collector.formats.step_sources import RecordingSource
    from collector.web.report_file import write_report

    try:
        write_report(path, [(name, Step(RecordingSource(recording))) for name, recording in parts], title=title)
    except (CollectorError, OSError) as error:
        return _cause_of(error)
    return None


def _cause_of(error: Exception) -> str:
    """The error without the path."""
    cause = error.__cause__ or error
    return str(getattr(cause, "strerror", None) or cause)


def longest(traces: Iterable[tuple[int, str]], count: int) -> set[str]:
    """The paths of the ``count`` traces with the most device time; equal ones are ordered by name."""
    return {path for _, path in sorted(traces, key=lambda trace: (-trace[0], trace[1]))[:count]}
