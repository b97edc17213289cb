"""Record a running process that is prepared for it.

A process listens if it runs under `collector run --listen`, was started with COLLECTOR_LISTEN=1 and imports the
collector, or has called collector.listen(). It continues while it is recorded.

  collector attach 1234 status                            print what the process is recording
  collector attach 1234 record 5s -o out.pftrace          record five seconds
  collector attach 1234 start                             begin to record
  collector attach 1234 stop -o out.json                  end, and write the records
  collector attach 1234 dump -o out.pftrace               write the records so far; the recording continues
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._number_arguments import number_in
from collector.cli._path_arguments import check_names
from collector.cli._recorded_steps import print_recorded
from collector.cli._size_arguments import ring_size_argument
from collector.errors import CollectorError, OutputError
from collector.text import terminal
from collector.text.quantities import seconds_of

if TYPE_CHECKING:
    from collector.formats.step import Step
    from collector.launching.attached_process import AttachedProcess, Cut, ProcessState

_LARGEST_PROCESS = (1 << 31) - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    parser.add_argument("process", type=_process, metavar="PID", help="the number of the process")
    parser.add_argument("action", choices=("status", "start", "stop", "dump", "record"), help="what is to be done")
    parser.add_argument(
        "duration", nargs="?", type=_duration, metavar="TIME", help="the duration of `record`: 5s, 500ms, 2min"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write; its suffix is the format. {rank}, {pid}, {host} and {env:VARIABLE} are filled in. "
        "Without it the journal stays",
    )
    parser.add_argument(
        "--socket-folder", metavar="FOLDER", help="the folder that COLLECTOR_LISTEN names in the process"
    )
    parser.add_argument(
        "--max-size",
        type=ring_size_argument,
        default=0,
        metavar="SIZE",
        help="for `start`: keep only the latest records, in this much disk space, such as 512MB",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")


_WITH_FILE = ("stop", "dump", "record")
"""The actions that write a file."""


def _duration(text: str) -> float:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in which anything can be recorded")
    return seconds


def _process(text: str) -> int:
    number = number_in(text)
    if not 1 <= number <= _LARGEST_PROCESS:  # 0 and less stand for several processes
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of a process: give a number from 1 to {_LARGEST_PROCESS}"
        )
    return number


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    if (arguments.duration is None) == (arguments.action == "record"):
        raise CollectorError(
            "`record` needs a time, and the other actions none", "collector attach PID record 5s -o out.pftrace"
        )
    _check_options(arguments)
    output = _checked_output(arguments)
    process, state = _connect(arguments)
    if arguments.action == "status":
        _print_state(state)
    elif arguments.action == "start":
        started = process.start(total_bytes=arguments.max_size)
        with terminal.reader_may_leave():
            print(started)
    elif arguments.action == "stop":
        _stop(process, state, output, quiet=arguments.quiet)
    elif arguments.action == "dump":
        _dump(process.cut(), None, output, quiet=arguments.quiet)
    else:
        _record(process, arguments.duration, output, quiet=arguments.quiet)
    return 0


def _checked_output(arguments: argparse.Namespace) -> Path | None:
    """The file to write; None: there is none.

    Raises:
        collector.CollectorError: the file cannot be written.
    """
    from collector.files.atomic_files import check_writable
    from collector.formats.registry import output_of
    from collector.launching.attached_process import output_of_process

    if arguments.output is None or arguments.action not in _WITH_FILE:
        return None
    check_names([arguments.output])
    output = output_of_process(arguments.output, arguments.process)
    output_of(output)
    check_writable(output)
    return output


def _connect(arguments: argparse.Namespace) -> tuple[AttachedProcess, ProcessState]:
    """The process and its state; a Python process that does not listen yet is made to listen, if that is possible."""
    from collector.files.atomic_files import expanded
    from collector.launching.attached_process import AttachedProcess, NotListeningError, listen_remotely

    folder = None if arguments.socket_folder is None else expanded(arguments.socket_folder)
    process = AttachedProcess(arguments.process, folder)
    try:
        return process, process.status()
    except NotListeningError:
        if folder is not None or not listen_remotely(arguments.process):
            raise
        return process, process.status()


def _print_state(state: ProcessState) -> None:
    place = "" if state.journal is None else f", into {state.journal}"
    doing = {
        "idle": "listens, and is not recorded",
        "trace": "traces a step by itself",
        "record": f"is recorded by its own recorder{place}",
        "run": f"is recorded by `collector run`{place}",
        "attach": f"is recorded{place}",
    }
    print(f"process {state.process_id} {doing.get(state.state, state.state)}")
    if state.trouble:
        print(state.trouble)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise `collector.CollectorError` for an option of the command line that the action has no use for.

    Those that a project states are for the actions that use them.
    """
    given = arguments.on_command_line
    if "output" in given and arguments.action not in _WITH_FILE:
        raise CollectorError(f"`{arguments.action}` writes no file", "Give -o to stop, dump or record")
    if "max_size" in given and arguments.action != "start":
        raise CollectorError(
            f"`{arguments.action}` has no --max-size", "Give it to start: the recording then keeps its latest records"
        )


def _stop(process: AttachedProcess, state: ProcessState, output: Path | None, *, quiet: bool) -> None:
    from collector.launching.child_program import stop_raises
    from collector.launching.shared_recording import check_unused

    if state.journal is not None:
        check_unused(state.journal)
    with stop_raises():
        journal, trouble = process.stop()
        _tell(trouble)
        _write_journal(journal, output, quiet=quiet, is_of_run=state.state == "run")


def _record(process: AttachedProcess, seconds: float, output: Path | None, *, quiet: bool) -> None:
    """Make a recording, or take a part of the one that is open.

    A signal that ends programs ends the wait, and so does the end of the process.
    """
    from collector.launching.child_program import stop_raises
    from collector.launching.shared_recording import SharedRecording

    recording = SharedRecording(process)
    try:
        with stop_raises(), recording:
            with contextlib.suppress(KeyboardInterrupt):  # ends the wait, not the command
                process.wait_for_end(seconds)
            if recording.begin is None and recording.end_if_last():
                _tell(recording.trouble)
                _write_journal(recording.journal, output, quiet=quiet)
                return
            end = recording.end()
            _tell(recording.trouble)
            _dump(end, recording.begin, output, quiet=quiet)
    except BaseException:
        if recording.is_left:
            terminal.report(f"what was recorded is in {recording.journal}, which every command reads")
        raise


def _tell(trouble: str) -> None:
    if trouble:
        terminal.report(trouble)


def _write_journal(journal: Path, output: Path | None, *, quiet: bool, is_of_run: bool = False) -> None:
    """Write the journal of a recording that has ended as a file, and remove it; without a file it stays."""
    from collector.formats.loading import load
    from collector.launching.shared_recording import remove_journal

    try:
        step = load(journal)
        if output is not None:
            step.save(output)
    except BaseException:
        terminal.report(f"what was recorded is in {journal}, which every command reads")
        raise
    if output is None:
        _finish(step, journal, quiet=quiet)
        return
    _finish(step, output, quiet=quiet)
    if not is_of_run:  # that is part of the output of `collector run`
        remove_journal(journal)


def _dump(end: Cut, begin: Cut | None, output: Path | None, *, quiet: bool) -> None:
    """Write the closed segments of a recording, or the part of them since ``begin``."""
    from collector.files.new_folders import new_folder
    from collector.formats.loading import load
    from collector.launching.shared_recording import copied_segments, part_between

    parent = Path.cwd() if output is None else output.absolute().parent
    folder = new_folder(parent, ".collector-attach-")
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, folder)
        journal = copied_segments(end, folder)
        step = load(journal) if begin is None else part_between(journal, begin, end)
        if output is None:
            _finish(step, _kept(journal, parent / f"{end.journal.stem}-{end.segment}.journal"), quiet=quiet)
            return
        step.save(output)
        _finish(step, output, quiet=quiet)


def _kept(journal: Path, place: Path) -> Path:
    """Move a journal to a place that is free: a second recording of the process counts its segments anew."""
    for number in itertools.count(1):
        free = place if number == 1 else place.with_name(f"{place.stem}.{number}{place.suffix}")
        try:
            return journal.rename(free)  # fails if there is a folder that is not empty, or a file
        except OSError as error:
            if not free.exists():
                raise OutputError(f"{free} cannot be written: {error.strerror}") from error
    raise AssertionError("unreachable")


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _finish(step: Step, path: Path, *, quiet: bool) -> None:
    if _is_outside_ranges(step):
        terminal.report("nothing was recorded: the process is outside the ranges that `--capture-range` records")
    else:
        print_recorded(step, quiet=quiet)
    terminal.report(f"what was recorded is in {path}")


def _is_outside_ranges(step: Step) -> bool:
    """Whether only ranges of the process are recorded, and it was in none."""
    return not step.recording.has_work and "capture_ranges_recorded" in step.recording.counters
