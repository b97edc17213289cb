"""Turn a recorded step into a trace to look at.

Reads the traces of other tools, too, and gzipped files. The content decides, not the name. Many files at once:
`collector merge`.

  collector timeline step.pb -o step.json.gz
  collector timeline step.pb -o kernels.json --name 'gemm|conv' --min-duration 10us
  collector timeline step.pb -o small.pftrace --window 20ms..35ms --max-events 50000

Open .json and .pftrace at https://ui.perfetto.dev, .json also in chrome://tracing. XProf and TensorBoard want
LOGDIR/plugins/profile/NAME/host.xplane.pb and are given LOGDIR.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError, InvalidFileError
from collector.text import terminal
from collector.text.quantities import TIME_UNITS

if TYPE_CHECKING:
    from collector.protos import StepStats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.formats.registry import readable_list, suffixes_help, written_suffixes
    from collector.timeline.drawn_files import DRAWN_FILES

    written = written_suffixes()
    drawn = " and ".join(each.suffix for each in DRAWN_FILES)
    parser.add_argument(
        "input", type=Path, metavar="FILE", help=f"the step: {readable_list(with_origins=True)}; also gzipped"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help=f"what to write, by its suffix: {suffixes_help(written)}",
    )
    view = parser.add_argument_group(
        "what to draw",
        f"For {drawn}. Times are numbers with a unit: 800ns, 12.5us, 3ms, 1s. A slice is what is drawn for\n"
        "one kernel, copy, op or call. Counters (copies in flight, busy streams) count what is drawn.",
    )
    view.add_argument(
        "--device", metavar="REGEX", type=_regex, help="only devices with this in their name: gpu:0/stream:7"
    )
    view.add_argument("--name", metavar="REGEX", type=_regex, help="only slices with this in their short or whole name")
    view.add_argument("--min-duration", metavar="TIME", type=_time, default=0, help="only slices at least this long")
    view.add_argument(
        "--window",
        metavar="FROM..TO",
        type=_window,
        default=(None, None),
        help="only what overlaps this part of the trace, counted from its beginning; either end may be left open",
    )
    view.add_argument(
        "--max-events",
        metavar="N",
        type=_count,
        help="keep at most this many slices, the longest, and say what was left out; then all counters are, too: "
        "of what is kept alone they would be wrong",
    )
    view.add_argument("--no-arrows", action="store_true", help="without arrows from calls to what they caused")
    view.add_argument("--no-counters", action="store_true", help="without counters of memory, copies and busy streams")
    view.add_argument(
        "--tensorflow",
        action="store_true",
        help="exactly as TensorFlow's own Timeline draws it (a Chrome trace only; none of the options above)",
    )


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.files.atomic_files import check_writable
    from collector.formats.loading import load
    from collector.formats.registry import written_format
    from collector.timeline import View, chrome_trace
    from collector.timeline.drawn_files import CHROME, DRAWN_FILES

    wanted = written_format(arguments.output)
    check_writable(arguments.output, arguments.input)
    view = View(
        devices=arguments.device,
        names=arguments.name,
        min_duration_ns=arguments.min_duration,
        window_ns=arguments.window,
        max_events=arguments.max_events,
        arrows=not arguments.no_arrows,
        counters=not arguments.no_counters,
    )
    if arguments.tensorflow and wanted.drawn is not CHROME:
        remedy = f"Write {' or '.join(CHROME.suffixes)}"
        raise CollectorError(f"{arguments.output}: TensorFlow's timeline is a Chrome trace", remedy)
    if view != View() and (arguments.tensorflow or wanted.drawn is None):
        drawn = " and ".join(each.suffix for each in DRAWN_FILES)
        raise CollectorError(f"what to draw can be chosen for {drawn}, and not with --tensorflow")
    step = load(arguments.input)
    if step.is_empty:
        raise InvalidFileError(f"{arguments.input}: the file is empty", "Record the step again")
    if step.warning:
        terminal.report(step.warning)
    if arguments.tensorflow:
        _write_tensorflow(step.step_stats, arguments.output)
    elif wanted.drawn is not None:
        for sentence in chrome_trace(step, arguments.output, **vars(view)).sentences():
            terminal.report(f"{arguments.output}: {sentence}")
    else:
        step.save(arguments.output)
    return 0


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
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def _time(text: str) -> int:
    """Nanoseconds."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]+)", text.strip())
    if not found or found[2] not in TIME_UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: give a number and ns, us, ms or s, such as 12.5us")
    return round(float(found[1]) * TIME_UNITS[found[2]])


def _window(text: str) -> tuple[int | None, int | None]:
    first, dots, last = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError(f"{text!r} is no part of a trace: give FROM..TO, such as 20ms..35ms or 1s..")
    return _time(first) if first else None, _time(last) if last else None


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of slices")
    return int(text)
