"""XSpace profiles (``.xplane.pb``), which XProf and TensorBoard open; see `collector.formats.xspace`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.files.atomic_files import atomic_write
from collector.formats.file_format import Format, StepsWriter, Writable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step

_OWNER = re.compile(r"^(?:(?:(?:run \S+ )?rank|process) [0-9]+ ?)?(?:step [0-9]+)?: ")
"""The prefix of the losses of an input of a merged profile."""
_PLANE_NAMES = (b"/host:", b"/device:", b"Task Environment")


def _begins(head: bytes) -> bool:
    from collector.stepstats.salvage import fields_of_first

    return any(item.number == 2 and bytes(item.payload).startswith(_PLANE_NAMES) for item in fields_of_first(head))


def _read(content: FileContent) -> Step:
    from collector.formats.drawn_metadata import inputs_in, ledger_of_inputs, window_of_inputs
    from collector.formats.profiler_timeline import ProfilerTrace
    from collector.formats.step import Step
    from collector.formats.xprof_trace import XprofDialect
    from collector.formats.xspace_events import shown_warning, xspace_events
    from collector.recording.ledger import Ledger, unread_of_lines
    from collector.recording.recorder_name import stated_recorder
    from collector.recording.step_origin import StepOrigin, stated_counts
    from collector.recording.stream_names import stated_places
    from collector.stepstats.device_prefixes import is_device_prefix
    from collector.stepstats.stated_window import stated_window

    found = xspace_events(content.data)
    found.skipped.update(content.skipped)
    about = found.metadata
    stated = about.get("distributedInfo")
    stated = stated if isinstance(stated, dict) else {}
    prefix = str(stated.get("device_prefix", ""))
    inputs = inputs_in(stated)
    figures = ledger_of_inputs(inputs) if inputs else stated_counts(stated.get("ledger"))
    # The losses that figures state are among the warnings, those of an input of a merged profile behind its name.
    ledgers = [Ledger.from_dict(stated_counts(each.get("ledger"))) for each in [stated, *inputs]]
    of_ledgers = {shown_warning(line) for ledger in ledgers for line in ledger.losses()}
    is_figure = {line: (_OWNER.sub("", line, count=1) if inputs else line) in of_ledgers for line in about["warnings"]}
    trace = ProfilerTrace(
        XprofDialect(found),
        device_prefix=prefix if is_device_prefix(prefix) else "",
        unread=unread_of_lines(line for line in about["warnings"] if not is_figure[line]),
        figures=figures,
        has_all_figures=all(each.get("ledger") for each in inputs),
        window=window_of_inputs(inputs) if inputs else stated_window(stated),
        is_simulated=stated.get("simulated") is True,
        environment=stated_places(stated) | stated_recorder(inputs or [stated]),
    )
    if trace.is_empty and not stated:  # a profile of ours may be that of a step in which nothing happened
        raise content.error("an XSpace profile in which nothing can be read")
    origin = StepOrigin.from_dict(stated)
    return Step(
        trace,
        kind=FORMAT.name,
        path=content.name,
        skipped=found.skipped,
        cut_at=found.cut_at,
        rank=origin.rank,
        world_size=origin.world_size,
    )


def _write(step: Writable, path: Path) -> None:
    from collector.formats.xspace import write_xspace

    with atomic_write(path) as file:  # with the temporary file that the events wait in
        write_xspace(step.serialized(), file)


def _steps_writer(origin_ns: int) -> AbstractContextManager[StepsWriter]:
    from collector.formats.xspace import XSpaceWriter

    return XSpaceWriter(origin_ns)


FORMAT = Format(
    name="XSpace profile",
    family="XSpace profiles",
    suffixes=(".xplane.pb",),
    use="for XProf and TensorBoard",
    origin="TensorFlow and JAX",
    begins=_begins,
    read=_read,
    write=_write,
    steps_writer=_steps_writer,
)
