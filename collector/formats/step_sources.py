"""The sources of steps that were read: they make columns, messages and bytes from a file's content on request."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from collector.runtime.extension import convert_extension
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.formats.call_sums import CallSums
    from collector.protos import Provenance, RunMetadata
    from collector.recording.recording import Recording
    from collector.recording.step_origin import StepOrigin


class StepSource:
    """The source of a step, as it was read: it makes columns and messages on request."""

    is_recording = False
    """Whether columns are the original form, from which StepStats are made."""
    counts_cut_files = False
    """Whether the recording's ledger counts that the file was cut off."""
    device_prefix = ""
    """Put before the names of devices where StepStats are made of columns."""
    has_more_columns = False
    """Whether the columns have content that a message made from the same file does not have."""
    is_one_process = True
    """Whether the ids of objects are those of one process, which the columns and the message have alike."""

    def recording(self) -> Recording:
        """The step as columns."""
        raise NotImplementedError

    def run_metadata(self, origin: StepOrigin) -> RunMetadata:
        """The step as a message that may be changed; its provenance contains the origin."""
        message = self.message()
        self._state_besides(message.provenance, origin)
        return message

    def provenance(self, origin: StepOrigin) -> Provenance:
        """The provenance in `run_metadata`, without the nodes of the step."""
        from collector.protos import Provenance

        stated = Provenance()
        stated.CopyFrom(self.own_provenance())
        self._state_besides(stated, origin)
        return stated

    def _state_besides(self, provenance: Provenance, origin: StepOrigin) -> None:
        """Add the origin, so that everything made from the step states it."""
        for reason, count in origin.unread.items():
            provenance.unread[reason] += count
        if origin.rank is not None:
            provenance.rank = origin.rank
        if origin.world_size is not None:
            provenance.world_size = origin.world_size

    def message(self) -> RunMetadata:
        """The step as a message, without the origin."""
        raise NotImplementedError

    def own_provenance(self) -> Provenance:
        """The provenance in `message`."""
        return self.message().provenance

    def wire(self, origin: StepOrigin) -> tuple[bytes, bool] | None:
        """The bytes of a message, and whether it is a RunMetadata; None where they are made of `run_metadata`."""
        return None

    def sums(self) -> CallSums | None:
        """The sums by call path of a profile without start times; None where there are columns or messages."""
        return None

    def prefix_beside(self, recording: Recording) -> str | None:
        """The prefix of all device names, if it and the recording contain everything about the step; otherwise None."""
        return None

    def unread(self) -> Mapping[str, int]:
        """Reason -> count of losses from the time when the file was made, which no ledger in it counts."""
        return {}

    def device_names(self) -> list[str]:
        """The device names in StepStats that were read; empty for a recording."""
        return []

    def size(self) -> str:
        """The size of the step in words, if it is known without making a message; otherwise ``""``."""
        return ""


class ColumnsSource(StepSource):
    """Columns, of which messages are made."""

    is_recording = True

    def run_metadata(self, origin: StepOrigin) -> RunMetadata:
        """See `StepSource`."""
        from collector.stepstats.from_recording import run_metadata

        return run_metadata(self.recording(), self.device_prefix, origin)

    def provenance(self, origin: StepOrigin) -> Provenance:
        """See `StepSource`."""
        from collector.stepstats.from_recording import provenance

        return provenance(self.recording(), origin)

    def wire(self, origin: StepOrigin) -> tuple[bytes, bool]:
        """See `StepSource`."""
        from collector.stepstats.from_recording import serialized

        return serialized(self.recording(), self.device_prefix, origin), True


class RecordingSource(ColumnsSource):
    """A recording."""

    counts_cut_files = True
    _unread: Mapping[str, int] = MappingProxyType({})

    def __init__(
        self,
        recording: Recording,
        device_prefix: str = "",
        *,
        unread: Mapping[str, int] | None = None,
        counts_cut_files: bool = True,
    ) -> None:
        self._recording = recording
        self.device_prefix = device_prefix
        self._unread = unread or {}
        self.counts_cut_files = counts_cut_files

    def recording(self) -> Recording:
        """See `StepSource`."""
        return self._recording

    def unread(self) -> Mapping[str, int]:
        """See `StepSource`."""
        return self._unread

    def size(self) -> str:
        """See `StepSource`."""
        return rows_of(self._recording)


class WireSource(StepSource):
    """The bytes of a message that protobuf would parse."""

    def __init__(self, data: bytes, *, is_run_metadata: bool, size: tuple[int, int]) -> None:
        """Take the bytes; ``size`` is the number of devices and of nodes in them."""
        self._data = data
        self._is_run_metadata = is_run_metadata
        self._size = size

    def recording(self) -> Recording:
        """See `StepSource`."""
        from collector.formats.stepstats_columns import recording_of_message

        return recording_of_message(self._data, is_run_metadata=self._is_run_metadata)

    def message(self) -> RunMetadata:
        """See `StepSource`."""
        from collector.stepstats.wire import run_metadata_of

        return run_metadata_of(self._data, self._is_run_metadata)

    def own_provenance(self) -> Provenance:
        """See `StepSource`."""
        from collector.protos import Provenance
        from collector.stepstats.wire import provenance_of

        return (provenance_of(self._data) if self._is_run_metadata else None) or Provenance()

    def wire(self, origin: StepOrigin) -> tuple[bytes, bool] | None:
        """See `StepSource`. The rank is stated in these bytes."""
        return None if origin.unread else (self._data, self._is_run_metadata)

    def prefix_beside(self, recording: Recording) -> str | None:
        """See `StepSource`."""
        from collector.stepstats.device_prefixes import common_prefix
        from collector.stepstats.to_recording import has_recording

        if not self._is_run_metadata or not has_recording(self._data):
            return None
        if recording.ledger.source_counters.get("nodes_without_columns"):
            return None
        return common_prefix(self.device_names())

    def device_names(self) -> list[str]:
        """See `StepSource`."""
        devices = convert_extension.devices(self._data, is_run_metadata=self._is_run_metadata)
        return [device.decode(errors="replace") for device in devices]

    def size(self) -> str:
        """See `StepSource`."""
        return devices_and_nodes(*self._size)


class MessageSource(StepSource):
    """A message that was parsed, because its bytes had to be repaired or are text."""

    def __init__(self, message: RunMetadata) -> None:
        self._message = message

    def recording(self) -> Recording:
        """See `StepSource`."""
        from collector.formats.stepstats_columns import recording_of_message

        return recording_of_message(self._message.SerializeToString(deterministic=True), is_run_metadata=True)

    def device_names(self) -> list[str]:
        """See `StepSource`."""
        return [device.device for device in self._message.step_stats.dev_stats]

    def message(self) -> RunMetadata:
        """See `StepSource`."""
        return self._message


class CallSumsSource(StepSource):
    """Sums by call path, from which neither columns of activities nor messages can be made: both need start times."""

    def __init__(self, sums: CallSums) -> None:
        self._sums = sums

    def sums(self) -> CallSums:
        """See `StepSource`."""
        return self._sums

    def recording(self) -> Recording:
        """Raises `collector.InvalidFileError`."""
        raise self._sums.refusal

    def message(self) -> RunMetadata:
        """Raises `collector.InvalidFileError`."""
        raise self._sums.refusal

    def size(self) -> str:
        """See `StepSource`."""
        launches = sum(row.runs for row in self._sums.rows)
        return f"{counted('{:,} launch[|es]', launches)} in {counted('{:,} node[|s]', self._sums.num_nodes)}"


def rows_of(recording: Recording) -> str:
    """The number of rows in each table of a recording, without empty tables."""
    from collector.recording.schema import SCHEMA

    rows = {name: len(getattr(recording, name)) for name in SCHEMA}
    return ", ".join(f"{name}: {count:,}" for name, count in rows.items() if count) or "empty"


def devices_and_nodes(num_devices: int, num_nodes: int) -> str:
    """The size of a message in words."""
    return f"{counted('{:,} device[|s]', num_devices)}, {counted('{:,} node[|s]', num_nodes)}"
