"""Several steps drawn into one file of any format."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from collector.files.atomic_files import packed
from collector.formats.file_format import StepsWriter
from collector.formats.registry import merged_format
from collector.formats.stated_origin import recorder_in
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats
from collector.recording.ledger import Ledger
from collector.runtime.extension import convert_extension
from collector.stepstats.device_prefixes import device_in_process, split_prefix
from collector.stepstats.object_tables import object_rows_of, strings_of
from collector.stepstats.stated_window import KEY as WINDOW_KEY
from collector.stepstats.stated_window import window_of, window_texts
from collector.timeline.drawing import call_ops_of, objects_of, op_details_of, recorded_by, remarks_of
from collector.timeline.object_labels import object_labels
from collector.timeline.op_arguments import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from collector._convert import MergedTrace
    from collector.protos.run_metadata_pb2 import Provenance
    from collector.stepstats.object_tables import ObjectRow

_STEPS_DEVICE = "Steps"
"""The process that shows the begin and end of each step, with one row per rank."""


@dataclass
class Placed:
    """A step with its position on the common time axis."""

    number: int
    run: str
    """Empty if there are not several runs."""
    rank: str
    """``rank 3``, of several runs ``run tuesday rank 3``; empty if there is only one rank."""
    owner: str
    """Prefix of its processes' names, which distinguishes them from those of other steps."""
    shift_ns: int
    """Added to its own times."""
    added_to_correlations: int
    """Added to its own correlation ids, so that no other step on the same tracks has them."""
    own_start_ns: int
    """First start on its own clock."""
    length_ns: int
    """From first start to last end."""
    devices: Sequence[bytes]
    """The StepStats names of all drawn devices."""


class MergedFile(Protocol):
    """A file of several steps that is being written."""

    def add(
        self, message: bytes, step: Placed, *, is_run_metadata: bool, provenance: Provenance | None, given: Any
    ) -> tuple[int, int]:
        """Draw a step; return the number of drawn nodes, and of nodes without a possible time.

        Args:
            message: the serialized StepStats, or the RunMetadata if ``is_run_metadata``.
            step: the position of the step.
            is_run_metadata: the type of the message.
            provenance: the provenance of the message.
            given: the step in whatever form it was given or loaded.
        """
        ...

    def finish(self, about: dict[str, Any]) -> None:
        """Write the rest, with the file's metadata, whose ``inputs`` begin with the drawn ones in this order."""
        ...


@contextmanager
def merged_file(
    file: BinaryIO, target: Path, steps: Sequence[Placed], layout: str, base_ns: int
) -> Iterator[MergedFile]:
    """A file for steps in this order, written to `file` in the format of `target`; its time 0 is ``base_ns``."""
    wanted = merged_format(target)
    if wanted.steps_writer is not None:
        with wanted.steps_writer(base_ns) as writer:
            yield _WrittenFile(writer, file, together=layout == "sequence")
        return
    assert wanted.drawn is not None
    with packed(file, target) as stream:
        write = stream.write
        owned = [(step.owner, device) for step in steps for device in step.devices]
        owned += [("", _steps_device(step.rank).encode()) for step in steps]
        trace = convert_extension.MergedTrace(write, writer=wanted.drawn.writer, owned_devices=owned)
        yield _DrawnFile(trace, steps, layout, base_ns)


class _StatedInputs:
    """The metadata of a file's inputs, compressed until the file is finished."""

    def __init__(self) -> None:
        self._packed: list[bytes] = []

    def add(self, stated: dict[str, Any]) -> None:
        """Add the metadata of the next input."""
        self._packed.append(zlib.compress(json.dumps(stated).encode()))

    def within(self, about: dict[str, Any]) -> str:
        """The metadata of the file, as JSON text, with all that was added."""
        own = about["inputs"][: len(self._packed)]
        inputs = [
            {**each, **json.loads(zlib.decompress(packed))} for each, packed in zip(own, self._packed, strict=True)
        ]
        return json.dumps({**about, "inputs": inputs + self.further(about)}, sort_keys=True)

    def further(self, about: dict[str, Any]) -> list[dict[str, Any]]:
        """The metadata of the inputs that were not added, because they have no time."""
        not_added: list[dict[str, Any]] = about["inputs"][len(self._packed) :]
        return not_added


class _DrawnFile:
    """A trace drawn by the extension."""

    def __init__(self, trace: MergedTrace, steps: Sequence[Placed], layout: str, base_ns: int) -> None:
        self._trace = trace
        self._steps = steps
        self._layout = layout
        self._base_ns = base_ns
        self._inputs = _StatedInputs()

    def add(
        self, message: bytes, step: Placed, *, is_run_metadata: bool, provenance: Provenance | None, given: Any
    ) -> tuple[int, int]:
        shown = object_labels(objects_of(given, message, is_run_metadata), provenance)
        self._inputs.add(_stated(step, provenance, shown.tables))
        slices, untimed = self._trace.add(
            message,
            is_run_metadata=is_run_metadata,
            owner=step.owner,
            base_ns=self._base_ns,
            start_ns=step.own_start_ns,
            shift_ns=step.shift_ns,
            added_to_correlations=step.added_to_correlations,
            remarks=remarks_of(provenance),
            labels=shown.labels,
            event_records=shown.event_records,
            op_details=op_details_of(given, message, is_run_metadata),
            collectives=shown.collectives,
            call_ops=call_ops_of(given, message, is_run_metadata),
            sampled=shown.counters,
        )
        return slices, untimed

    def finish(self, about: dict[str, Any]) -> None:
        self._mark_steps()
        self._trace.finish(self._inputs.within(about))

    def _mark_steps(self) -> None:
        """Add a process with the steps of each rank, and a mark across the axis at each step's begin."""
        base_ns = self._base_ns
        by_rank: dict[str, list[Placed]] = defaultdict(list)
        for step in self._steps:
            by_rank[step.rank].append(step)
        devices = [
            DeviceStepStats(device=_steps_device(rank), node_stats=[_step_node(step) for step in own])
            for rank, own in by_rank.items()
        ]
        self._trace.add(
            StepStats(dev_stats=devices).SerializeToString(),
            is_run_metadata=False,
            owner="",
            base_ns=base_ns,
            start_ns=base_ns,
            shift_ns=0,
            added_to_correlations=0,
            remarks=[],
            labels={},
            event_records=[],
            op_details=NOTHING,
            collectives=NOTHING,
            call_ops=NOTHING,
            sampled=(),
        )
        if self._layout == "sequence":
            first: dict[str, int] = {}
            for step in self._steps:
                start_ns = step.own_start_ns + step.shift_ns
                name = f"run {step.run} step {step.number}" if step.run else f"step {step.number}"
                first[name] = min(first.get(name, start_ns), start_ns)
            for name, start_ns in sorted(first.items(), key=lambda pair: pair[1]):
                self._trace.mark(start_ns - base_ns, name)


def _stated(step: Placed, provenance: Provenance | None, tables: Mapping[str, list[ObjectRow]]) -> dict[str, Any]:
    """The metadata of an input in a drawn file; the times are those of its own clock."""
    devices = (device.decode(errors="replace") for device in step.devices)
    prefixes = {split_prefix(device_in_process(device, f"{step.owner} "))[0] for device in devices}
    stated: dict[str, Any] = dict(tables)
    if len(prefixes) == 1:  # else its objects belong to several processes
        stated["device_prefix"] = prefixes.pop()
    if provenance is not None and provenance.ledger:
        stated |= recorded_by(provenance)
    return stated | _window(provenance)


def _window(provenance: Provenance | None) -> dict[str, Any]:
    window = window_of(provenance)
    return {WINDOW_KEY: window_texts(window)} if window else {}


def _steps_device(rank: str) -> str:
    return f"{_STEPS_DEVICE}/{rank or 'steps'}"


def _step_node(step: Placed) -> NodeExecStats:
    start_ns = step.own_start_ns + step.shift_ns
    return NodeExecStats(
        node_name=f"step {step.number}",
        all_start_micros=start_ns // 1000,
        all_start_nanos=start_ns,
        all_end_rel_micros=max(step.length_ns // 1000, 1),
        all_end_rel_nanos=step.length_ns,
    )


class _WrittenFile:
    """A file that contains StepStats in another form, such as XProf's profile, whose writer marks the steps itself."""

    def __init__(self, writer: StepsWriter, file: BinaryIO, *, together: bool) -> None:
        self._writer = writer
        self._file = file
        self._together = together
        self._inputs = _StatedInputs()

    def add(
        self, message: bytes, step: Placed, *, is_run_metadata: bool, provenance: Provenance | None, given: Any
    ) -> tuple[int, int]:
        # The names of planes do not contain the rank that a device's name states.
        owner = step.owner if step.owner.startswith(step.rank) else f"{step.rank} {step.owner}".strip()
        for loss in Ledger.of(provenance).losses() if provenance is not None else ():
            self._writer.warn(f"{owner}: {loss}" if owner else loss)
        self._inputs.add(_window(provenance) | recorder_in(provenance))
        return self._writer.add(
            message,
            is_run_metadata=is_run_metadata,
            number=step.number,
            shift_ns=step.shift_ns,
            owner=owner,
            run=step.run,
            together=self._together,
            objects=object_rows_of(message) if is_run_metadata else {},
            texts=strings_of(message) if is_run_metadata else [],
            details=op_details_of(given, message, is_run_metadata),
        )

    def finish(self, about: dict[str, Any]) -> None:
        for not_drawn in self._inputs.further(about):
            for loss in Ledger.from_dict(not_drawn["ledger"]).record_losses():
                self._writer.warn(loss)
        self._writer.write(self._file, self._inputs.within(about))
