"""The journals that the processes of a program have left in a folder, and the files that are made of them."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from collector.errors import CollectorError, OutputError
from collector.files.atomic_files import expanded
from collector.files.path_kinds import is_folder
from collector.formats.output_paths import (
    ProcessIdentity,
    check_place,
    check_placeholders,
    filled_path,
    path_with_word,
    placeholders_of,
)
from collector.formats.registry import merged_suffixes, output_of, suffix_of
from collector.recording.ledger import BROKE_OFF
from collector.recording.schema import SCHEMA
from collector.runtime.launcher_ranks import is_of_launcher
from collector.runtime.optional_packages import optional_package
from collector.runtime.running_processes import process_exists
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.formats.step import Step

_PER_PROCESS = {"rank", "pid", "host"}
"""Placeholders that give each process a file of its own."""


@dataclass(frozen=True)
class TracedProcess:
    """One process of a program, with its records."""

    identity: ProcessIdentity
    rank: int | None
    """Its rank, if its launcher stated one."""
    step: Step
    """All of its records."""
    ranges: tuple[Step, ...] = ()
    """Its ranges, if only ranges were recorded and there are several."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Its ranges or, if there is at most one, the whole step."""
        return self.ranges or (self.step,)

    @property
    def name(self) -> str:
        """``rank 3`` or ``process 1234``."""
        return self.step.process_name if self.rank is None else f"rank {self.rank}"

    @property
    def has_ended(self) -> bool:
        """Whether it ended its recording properly, i.e. was not killed."""
        return not self.step.ledger.interrupted

    @property
    def is_running(self) -> bool:
        """Whether it is still running on this machine."""
        is_here = self.identity.host == os.uname().nodename
        pid_namespace = self.step.process.pid_namespace if self.step.process is not None else ""
        return not self.has_ended and is_here and process_exists(self.identity.process_id, pid_namespace)


class TracedProcesses(NamedTuple):
    """The contents of a program's journals."""

    found: list[TracedProcess]
    """The processes with records, sorted by rank and begin."""
    without_ranges: int
    """Processes that opened no range, although only ranges were to be recorded."""
    lost: list[str]
    """One line for each process that is lost."""


def traced_processes(folder: Path) -> TracedProcesses:
    """The processes whose journals are in ``folder``.

    A process that ended without having used a GPU is left out.
    """
    from collector.formats.journal_format import read_ranges
    from collector.formats.loading import load

    found, without_ranges, lost = [], 0, []
    for path in sorted(folder.glob("*.journal")):
        try:
            step = load(path)
            num_ranges = step.recording.counters.get("capture_ranges_recorded")
            ranges = tuple(read_ranges(step)) if num_ranges is not None and num_ranges > 1 else ()
        except CollectorError as error:
            lost.append(str(error))
            continue
        stated = step.process
        if stated is None or stated.process_id is None:
            lost.append(f"{path.name} states no process")
            continue
        host = path.name.rpartition(f"-{stated.process_id}")[0]
        identity = ProcessIdentity(stated.process_id, host, stated.variables)
        process = TracedProcess(identity, step.rank, step, ranges)
        if num_ranges == 0:
            without_ranges += 1
        elif any(len(getattr(step.recording, table)) for table in SCHEMA):
            found.append(process)
        elif step.ledger.rows_forgotten:
            rows = counted("{:,} row[|s]", step.ledger.rows_forgotten)
            lost.append(f"nothing is left of {process.name}: all {rows} were removed to keep the size")
        elif not process.has_ended:
            lost.append(_without_records(process))
    found.sort(key=lambda each: (each.rank is None, each.rank or 0, each.step.recording.clock.wall_start_ns, each.name))
    return TracedProcesses(found, without_ranges, lost)


def _without_records(process: TracedProcess) -> str:
    """The reason why the journal of a process that did not end its recording has no records."""
    counters = process.step.recording.counters
    broke_off = f"the recording of {process.name} broke off while its first records were written (is the disk full?)"
    if counters.get(BROKE_OFF):
        return broke_off
    if process.is_running:
        return f"{process.name} is still running, and has written no records so far"
    if counters.get("journal_bytes_cut"):
        return broke_off
    return (
        f"{process.name} has left no records: it ended by `_exit` or a signal within half a second, before its first "
        "records were written, or could not reach its journal, which it has reported then"
    )


def is_dataset(output: str) -> bool:
    """Whether an output is the folder of a dataset: it ends in a slash, or is a folder."""
    return output.endswith(os.sep) or is_folder(expanded(output))


def check_output(output: str) -> None:
    """Raise `collector.CollectorError` if no file or dataset of this name can be made.

    A variable in its name has to be set already, unless launchers set it: the program may give it other values, but a
    misspelled one must not be found when the program has ended.
    """
    if not output:
        raise OutputError("the name of the output is empty", "Name a file, or the folder of a dataset; ./ is this one")
    set_later = {name: "set later" for name in variables_of(output) if is_of_launcher(name)}
    check_placeholders(Path(output), {**set_later, **os.environ})
    path, as_dataset = expanded(output), is_dataset(output)
    if as_dataset:
        from collector.dataset import dataset_folder

        optional_package("pyarrow.parquet")
        dataset_folder.check_output(path)
    else:
        output_of(path)
        check_place(path)


def variables_of(output: str) -> list[str]:
    """The variables of the environment that the placeholders of an output name."""
    return [name.removeprefix("env:") for name in placeholders_of(Path(output)) if name.startswith("env:")]


def save_processes(processes: Sequence[TracedProcess], output: str, *, as_dataset: bool) -> list[Path]:
    """Write the records of the processes; return the files, or the folder.

    One file holds all processes if its format takes several steps, unless a placeholder gives each its own; the ranges
    of a process are steps in it. In a format that takes one step, each of several processes gets a file with its rank
    or number in the name, and all its ranges are one step. With ``{step}`` each range has a file of its own.

    Raises:
        collector.CollectorError: an output cannot be written.
    """
    if as_dataset:
        return [_save_in_dataset(processes, expanded(output))]
    path = expanded(output)
    if "step" not in placeholders_of(path):
        return _save(processes, path, 0)
    files = []
    for number in range(max(len(each.steps) for each in processes)):
        of_number = [
            replace(each, step=each.steps[number], ranges=()) for each in processes if number < len(each.steps)
        ]
        files += _save(of_number, path, number)
    return files


def _save(processes: Sequence[TracedProcess], path: Path, number: int) -> list[Path]:
    is_merged = suffix_of(path.name) in merged_suffixes()
    if _PER_PROCESS.intersection(placeholders_of(path)) or len(processes) == 1:
        files = [filled_path(path, each.rank, number, each.identity) for each in processes]
        files = _distinct(files, processes)
    elif is_merged:
        together = filled_path(path, None, number, processes[0].identity)
        _merge(processes, together)
        return [together]
    else:
        filled = [filled_path(path, each.rank, number, each.identity) for each in processes]
        words = [each.name.replace(" ", "") for each in processes]
        own = [path_with_word(file, word) for file, word in zip(filled, words, strict=True)]
        files = _distinct(own, processes)
    for file, each in zip(files, processes, strict=True):
        if is_merged and each.ranges:
            _merge([each], file)
        else:
            each.step.save(file)
    return files


def _merge(processes: Sequence[TracedProcess], file: Path) -> None:
    from collector.merging.merged_trace import merge

    hosts = {each.identity.host for each in processes}
    steps = [step for each in processes for step in each.steps]
    merge(steps, file, clock_offsets="estimate" if len(hosts) > 1 else None)


def _distinct(files: Sequence[Path], processes: Sequence[TracedProcess]) -> list[Path]:
    """Different names for all: the number of the process is put into the name where several would be the same."""
    return [
        path_with_word(file, f"pid{each.identity.process_id}.{at}") if file in files[:at] else file
        for at, (file, each) in enumerate(zip(files, processes, strict=True))
    ]


def _save_in_dataset(processes: Sequence[TracedProcess], folder: Path) -> Path:
    """Write all processes as ranks of one run; those of one rank are steps of it that are named by their process."""
    from collector.dataset.dataset_writer import DatasetWriter, run_of_this_process

    run = run_of_this_process()
    target = filled_path(folder, None, 0, processes[0].identity)
    by_rank: dict[int, list[TracedProcess]] = {}
    for each in processes:
        if each.rank is not None:
            by_rank.setdefault(each.rank, []).append(each)
    free = (rank for rank in count() if rank not in by_rank)
    by_rank |= {next(free): [each] for each in processes if each.rank is None}
    with ExitStack() as stack:
        for rank, members in sorted(by_rank.items()):
            writer = stack.enter_context(DatasetWriter(target, run=run, rank=rank))
            for each in members:
                is_named = each.rank is None or len(members) > 1
                for step in each.steps:
                    writer.write(step.recording, name=each.step.process_name if is_named else "")
    return target
