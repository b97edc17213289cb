"""Convert a recorded step into a trace for a viewer.

Also reads the traces of other tools, and gzipped files. The format is recognised by the content, not the name. For many
files use `collector merge`.

  collector timeline step.pb -o step.json.gz
  collector timeline step.pb -o kernels.json --name 'gemm|conv' --min-duration 10us
  collector timeline step.pb -o small.pftrace --window 20ms..35ms --max-events 50000

Open .json and .pftrace at https://ui.perfetto.dev, .json also in chrome://tracing. For XProf and TensorBoard, write
LOGDIR/plugins/profile/NAME/host.xplane.pb and start them with LOGDIR.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._number_arguments import count_in
from collector.cli._path_arguments import path_argument
from collector.cli._project_options import is_of_project, leave_out, option_text, settle
from collector.cli._time_arguments import time_argument, time_window
from collector.errors import CollectorError
from collector.files.written_files import written
from collector.text import terminal
from collector.text.progress import progress

if TYPE_CHECKING:
    from collector.formats.journal_format import PartToDraw
    from collector.formats.step import Step
    from collector.protos import StepStats
    from collector.timeline import Drawn, View
    from collector.timeline.drawn_files import DrawnFile


_SELECTING = ("device", "name", "min_duration", "window", "max_events", "no_arrows", "no_counters")
"""Options that select slices."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.formats.registry import readable_list, suffixes_help, written_suffixes
    from collector.timeline.drawn_files import DRAWN_FILES

    written = written_suffixes()
    drawn = " and ".join(each.suffix for each in DRAWN_FILES)
    parser.add_argument(
        "input", type=path_argument, metavar="FILE", help=f"the step: {readable_list(with_origins=True)}; also gzipped"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_argument,
        required=True,
        metavar="FILE",
        help=f"the file to write; its suffix is the format: {suffixes_help(written)}",
    )
    view = parser.add_argument_group(
        "selection",
        f"For {drawn}. Times are numbers with a unit: 800ns, 12.5us, 3ms, 1s. A slice represents one kernel, copy,\n"
        "op or call. Counters (copies in flight, busy streams) cover the selected slices.",
    )
    view.add_argument(
        "--device", metavar="REGEX", type=_regex, help="only devices whose name matches, such as gpu:0/stream:7"
    )
    view.add_argument("--name", metavar="REGEX", type=_regex, help="only slices whose short or whole name matches")
    view.add_argument(
        "--min-duration", metavar="TIME", type=time_argument, default=0, help="only slices of at least this length"
    )
    view.add_argument(
        "--window",
        metavar="FROM..TO",
        type=time_window,
        default=(None, None),
        help="only slices that overlap this part of the step, counted from its start, as in `collector stats`; either "
        "end may be omitted",
    )
    view.add_argument(
        "--max-events",
        metavar="N",
        type=_count,
        help="draw at most this many slices, the longest, and report the number left out; counters, which would be "
        "wrong, are then left out too",
    )
    view.add_argument("--no-arrows", action="store_true", help="without arrows from calls to their activities")
    view.add_argument("--no-counters", action="store_true", help="without counters of memory, copies and busy streams")
    view.add_argument(
        "--tensorflow",
        action="store_true",
        help="exactly the output of TensorFlow's own Timeline (only a Chrome trace; none of the options above)",
    )


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.files.atomic_files import check_writable
    from collector.formats.registry import save_in_format, written_format

    wanted = written_format(arguments.output)
    check_writable(arguments.output, arguments.input)
    view = _checked_view(arguments, wanted.drawn)
    step, part = _load(arguments.input, view)
    if part is not None:
        view = replace(view, extent=part.extent)
        terminal.report(f"{arguments.input}: of the journal, the part of the window was read; others are not counted")
    if step.warning:
        terminal.report(step.warning)
    if part is None and step.recorded is not None and not step.recorded.ledger.launches_seen:
        from collector.analysis.no_launches import no_launches  # importing it takes as long as drawing a small step

        if causes := no_launches(step.recorded):
            terminal.report(f"{arguments.input}: {causes}")
    with written(arguments.output), progress(f"writing {arguments.output.name}"):
        if arguments.tensorflow:
            _write_tensorflow(step.step_stats, arguments.output)
        elif wanted.drawn is not None:
            for sentence in _draw(step, arguments.output, view, wanted.drawn).sentences():
                terminal.report(f"{arguments.output}: {sentence}")
        else:
            save_in_format(step, arguments.output)
    return 0


def _checked_view(arguments: argparse.Namespace, drawn: DrawnFile | None) -> View:
    """The selection of slices; ``drawn`` is the format of the output, None: it is not drawn.

    Raises:
        collector.CollectorError: options exclude each other, or do not apply to the output.
    """
    from collector.timeline import View
    from collector.timeline.drawn_files import CHROME, DRAWN_FILES

    settle(arguments, ("tensorflow",), _SELECTING)
    output = str(arguments.output)
    if is_of_project(arguments, "output"):
        output = f"{option_text(arguments, 'output')}, {output}"
    elif drawn is not CHROME:
        leave_out(arguments, "tensorflow", *(_SELECTING if drawn is None else ()))
    view = View(
        devices=arguments.device,
        names=arguments.name,
        min_duration_ns=arguments.min_duration,
        window_ns=arguments.window,
        max_events=arguments.max_events,
        arrows=not arguments.no_arrows,
        counters=not arguments.no_counters,
    )
    if arguments.tensorflow and drawn is not CHROME:
        remedy = f"Write {' or '.join(CHROME.suffixes)}"
        raise CollectorError(f"{output}: TensorFlow's timeline is a Chrome trace", remedy)
    if view != View() and (arguments.tensorflow or drawn is None):
        suffixes = " and ".join(each.suffix for each in DRAWN_FILES)
        given = "--tensorflow" if arguments.tensorflow else output
        raise CollectorError(f"{given}: options that select slices apply to {suffixes}, without --tensorflow")
    return view


def _load(path: Path, view: View) -> tuple[Step, PartToDraw | None]:
    """The step of a file; of a journal only the part that the view needs, if that is enough, and that part."""
    from collector.formats.loading import load

    part = None
    with progress(f"reading {path.name}"):
        # The drawing of some devices begins at their first slice.
        if view.window_ns != (None, None) and view.max_events is None and view.devices is None:
            part = _part_to_draw(path, view)
        return (load(path) if part is None else part.step), part


def _part_to_draw(path: Path, view: View) -> PartToDraw | None:
    """The part of a journal that the view's window needs; None: of other files, and where the whole is needed."""
    from collector.files.path_kinds import is_folder, is_regular_file
    from collector.formats.journal_format import part_to_draw
    from collector.recording.journal_segments import is_journal, segments_of

    is_cut_into_segments = is_folder(path) and bool(segments_of(path))
    if not is_cut_into_segments and not (is_regular_file(path) and is_journal(path)):
        return None
    return part_to_draw(path, view.window_ns, with_memory=view.counters)


def _draw(step: Step, path: Path, view: View, drawn: DrawnFile) -> Drawn:
    """Draw the slices that the view selects.

    Raises:
        collector.CollectorError: it selects none of those that the step has; nothing is written.
    """
    from collector.files.atomic_files import atomic_write, packed
    from collector.timeline import write_trace

    with atomic_write(path) as file, packed(file, path) as stream:
        figures = write_trace(step, stream.write, view, drawn)
        if not figures.slices and view.selects and view.max_events != 0:
            from collector.timeline.empty_views import reason_of_empty_view

            cause, remedy = reason_of_empty_view(step, view)
            if cause:
                raise CollectorError(f"{step.path}: {cause}", remedy)
        return figures


def _write_tensorflow(step_stats: StepStats, path: Path) -> None:
    from collector.files.atomic_files import atomic_write, packed
    from collector.timeline import Timeline

    data = Timeline(step_stats).generate_chrome_trace_format().encode()
    with atomic_write(path) as file, packed(file, path) as stream:
        stream.write(data)


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error
    return text


def _count(text: str) -> int:
    number = count_in(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of slices")
    return number
