"""The meaning of events in the traces of profilers, for each dialect."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from collector.formats.chrome_events import LARGEST_ID, per_place
from collector.formats.free_numbers import FreeNumbers
from collector.formats.torch_op_details import ARGUMENTS as OP_ARGUMENTS
from collector.formats.torch_op_details import SEQUENCE, OpDetails, op_details
from collector.recording.capture import NO_OBJECT
from collector.recording.distinct import distinct_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from collector.formats.capture_builder import CaptureBuilder, Column
    from collector.formats.chrome_events import ChromeEvents, Numbers
    from collector.recording.row_arguments import ArgumentColumn

KERNEL, MEMCPY, MEMSET, GPU_ANNOTATION, SYNC, OP, CALL, OTHER, MEMORY, SIDE = range(10)
"""Kinds of events: GPU work; other events on rows of a GPU; ops and CUDA calls of the host; any span; allocations;
rows of waits, overheads, graphs and the like that state their table."""
MEMORY_ARGUMENTS = frozenset({"Addr", "Bytes", "Device Id", "Device Type"})
"""The arguments of the events of PyTorch's allocator."""
_KINDS = {
    "kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
    "gpu_user_annotation": GPU_ANNOTATION,
    "cuda_sync": SYNC,
    "cpu_op": OP,
    "operator": OP,
    "user_annotation": OP,
}
"""Category (in lower case, as early traces have capitals) -> kind. Functions of Python are not ops but its stack."""
SOURCE = "profiler"
"""The ``source`` in the environment of recordings that were made of these traces."""
COLLECTIVE_NAME, GROUP, ELEMENT_TYPE = "Collective name", "Process Group Name", "dtype"
COLLECTIVE_FIGURES = {
    "Group size": "group_size",
    "Seq": "sequence",
    "In msg nelems": "num_in_elements",
    "Out msg nelems": "num_out_elements",
}
"""PyTorch's argument of a collective's kernel -> column of ``collectives``."""
COLLECTIVE_ARGUMENTS = frozenset({COLLECTIVE_NAME, GROUP, ELEMENT_TYPE, *COLLECTIVE_FIGURES})
COPY_FIGURES = {
    "fromDevice": "src_device_id",
    "fromContext": "src_context_id",
    "toDevice": "dst_device_id",
    "toContext": "dst_context_id",
}
"""Kineto's argument of a copy between GPUs -> column of ``memcpys``."""
_OF_PEER_COPIES = {"device": "inDevice", "context": "inContext"}
"""Figure of GPU work -> its name in copies between GPUs, for which Kineto does not state the usual one."""
_LINKS = frozenset({"External id", "external id", "correlation"})
"""The arguments by which events refer to each other. They mean nothing outside of their file."""
_OF_WORK = frozenset({
    *_LINKS, "stream", "graph id", "graph node id", *_OF_PEER_COPIES, *_OF_PEER_COPIES.values(),
})  # fmt: skip
_OF_LAUNCHES = {"shared memory": "shared memory", "bytes": "size"}
"""Figure of GPU work -> the argument of its launching call that states it, where that is one of HIP."""
_GRIDS_OF_THREADS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
"""Functions whose grid is a number of threads, and not of blocks."""
_LARGEST_SIZE = (1 << 31) - 1
LARGEST_SEQUENCE = (1 << 53) - 1
_LARGEST_FIGURES = {"bytes": (1 << 53) - 1, "graph node id": (1 << 63) - 1}
"""The largest figure, of those that may be beyond 32 bits."""
_SYNC_TYPES = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
"""Kineto's name of a ``CUpti_ActivitySynchronizationType`` -> its number."""
_DIGITS = re.compile(r"[0-9]{1,19}")
_NEGATIVE = re.compile(r"-[1-9][0-9]{0,9}")


class Names(NamedTuple):
    """Distinct texts, and the index of each event's text among them; -1: it has none."""

    texts: list[str]
    places: Numbers


class LaunchShapes(NamedTuple):
    """Three sizes for each event; -1 in all of them where it states none."""

    sizes: Numbers
    """Shapes, one in each row; the last one is for events that state none."""
    places: Numbers
    """The index of each event's shape among them; -1: it states none."""

    @property
    def of_events(self) -> Numbers:
        """The three sizes of each event, a row each."""
        found: Numbers = self.sizes[self.places]
        return found

    def or_else(self, others: LaunchShapes) -> LaunchShapes:
        """These shapes, and the other ones of events that state none here."""
        is_stated = self.sizes[self.places, 0] >= 0
        places = np.where(others.places < 0, -1, others.places + len(self.sizes))
        return LaunchShapes(np.concatenate([self.sizes, others.sizes]), np.where(is_stated, self.places, places))

    def axis(self, place: int) -> Numbers:
        """One of the three sizes for each event; 0 where it states none."""
        found: Numbers = np.maximum(self.sizes[:, place], 0)[self.places]
        return found


class ProfilerDialect:
    """PyTorch's profiler (Kineto), and any other program with timed events. Numbers that are not stated are -1."""

    arguments_of: Mapping[int, frozenset[str]] = {
        KERNEL: frozenset({
            *_OF_WORK, *COLLECTIVE_ARGUMENTS, "grid", "block", "registers per thread", "shared memory",
        }),
        MEMCPY: frozenset({*_OF_WORK, *COPY_FIGURES, "bytes"}),
        MEMSET: frozenset({*_OF_WORK, "bytes"}),
        GPU_ANNOTATION: frozenset({*_LINKS, "device", "stream"}),
        SYNC: frozenset({
            *_LINKS, "context", "stream", "cuda_sync_kind", "wait_on_cuda_event_id",
            "wait_on_cuda_event_record_corr_id", "wait_on_stream",
        }),
        OP: frozenset({*_LINKS, *OP_ARGUMENTS}),
        CALL: _LINKS,
        OTHER: _LINKS,
        MEMORY: MEMORY_ARGUMENTS,
    }  # fmt: skip
    """Kind of events -> their arguments that become columns of a recording, or link its rows."""
    launch_arguments: ClassVar[frozenset[str]] = frozenset({"grid", "block", *_OF_LAUNCHES.values()})
    """The arguments of calls that are read for the GPU work that they launched."""

    def __init__(self, found: ChromeEvents) -> None:
        """Hold the events."""
        self.found = found

    def kinds(self, rows: Numbers) -> npt.NDArray[np.integer]:
        """The kind of each event."""
        categories, index = self.found.categories(rows)
        return per_place(categories, _kind).astype(np.uint8)[index]

    def names(self, rows: Numbers) -> Names:
        """The names of events."""
        return Names(*self.found.names(rows))

    def devices(self, rows: Numbers) -> Numbers:
        """The numbers of GPUs."""
        stated = self.stated_devices(rows)
        return np.where(stated < 0, self.processes(rows), stated)

    def stated_devices(self, rows: Numbers) -> Numbers:
        """The numbers of GPUs that events state."""
        return ProfilerDialect.figures(self, "device", rows)

    def streams(self, rows: Numbers) -> Numbers:
        """The numbers of streams."""
        stated = self.stated_streams("stream", rows)
        return np.where(stated < 0, self.threads(rows), stated)

    def stated_streams(self, argument: str, rows: Numbers) -> Numbers:
        """The numbers of streams that events state; a negative one, which Kineto writes for no stream, is CUPTI's."""
        is_none = self.found.signed_integers(argument, rows) < 0
        return np.where(is_none, NO_OBJECT, self.found.integers(argument, rows))

    def gpu_rows(self, rows: Numbers) -> tuple[Names, Numbers]:
        """The names and the numbers of the GPU rows that hold ranges which are not work."""
        streams, places = distinct_codes(self.streams(rows))
        return Names([f"annotations of stream {stream}" for stream in streams.tolist()], places), streams[places]

    def threads(self, rows: Numbers) -> Numbers:
        """The numbers of threads."""
        return np.array([*self.thread_numbers, 0], np.int64)[self.found.track_numbers(rows)]

    def processes(self, rows: Numbers) -> Numbers:
        """The numbers of processes."""
        return np.array([*self._process_numbers, 0], np.int64)[self.found.track_numbers(rows)]

    @cached_property
    def thread_numbers(self) -> list[int]:
        """The number of each track's thread."""
        return row_numbers(thread for _, thread in self.found.tracks)

    @cached_property
    def _process_numbers(self) -> list[int]:
        return row_numbers(process for process, _ in self.found.tracks)

    def correlations(self, rows: Numbers) -> Numbers:
        """The number that a launch shares with the work that it caused; 0 where there is none."""
        return np.maximum(self.found.integers("correlation", rows), 0)

    def recorded_by(self, rows: Numbers) -> Numbers:
        """The number of the call that recorded the CUDA event for which a row waits; 0 where it is not known."""
        return np.maximum(self.found.integers("wait_on_cuda_event_record_corr_id", rows), 0)

    def memory_devices(self, rows: Numbers) -> Numbers:
        """The numbers of the GPUs on which PyTorch's allocator was asked for memory."""
        return np.maximum(self.found.integers("Device Id", rows), 0)

    def external_ids(self, rows: Numbers) -> Numbers:
        """The number that an op and its launched work share; before PyTorch 1.10 activities spell it in lower case."""
        stated = self.found.integers("External id", rows)
        return np.where(stated < 0, self.found.integers("external id", rows), stated)

    def op_details(self, rows: Numbers) -> OpDetails:
        """The properties of ops besides their times."""
        return op_details(self.found, rows)

    def op_sequences(self, rows: Numbers) -> Numbers:
        """The number of autograd, plus 1, that an op and its backward pass share; 0 where there is none."""
        return np.maximum(self.found.integers(SEQUENCE, rows, LARGEST_SEQUENCE) + 1, 0)

    def stated_ops(self, rows: Numbers) -> Names:
        """The ops that the events of GPU work state themselves."""
        return Names([], np.full(len(rows), -1, np.int64))

    def figures(self, figure: str, rows: Numbers) -> Numbers:
        """A figure of GPU work by its name at Kineto."""
        stated = self.found.integers(figure, rows, _LARGEST_FIGURES.get(figure, LARGEST_ID))
        if figure not in _OF_PEER_COPIES:
            return stated
        return np.where(stated < 0, self.found.integers(_OF_PEER_COPIES[figure], rows), stated)

    def sync_types(self, rows: Numbers) -> Numbers:
        """CUPTI's numbers of the types of waits; 0 for one that is not known."""
        values, places = self.found.values("cuda_sync_kind", rows)
        return per_place(values, lambda value: _SYNC_TYPES.get(value, 0) if isinstance(value, str) else 0, 0)[places]

    def copy_columns(self, kind: int, rows: Numbers) -> Mapping[str, Numbers]:
        """Columns of copies or memsets besides their size and the kinds that their names state."""
        if kind != MEMCPY:
            return {}
        return {column: np.maximum(self.figures(figure, rows), 0) for figure, column in COPY_FIGURES.items()}

    def stated_columns(self, table: str, rows: Numbers, built: CaptureBuilder) -> dict[str, Column]:
        """Columns that rows of a table state as arguments of their own; only profiles of ours do."""
        return {}

    def side_tables(self, rows: Numbers) -> Names:
        """The tables of rows that state their own; only profiles of ours have such rows."""
        return Names([], np.full(len(rows), -1, np.int64))

    def unread_details(self, table: str, rows: Numbers) -> dict[str, ArgumentColumn]:
        """The parts of arguments that the columns of a table take in part, as further arguments of its rows."""
        return {}

    def static_shared_bytes(self, rows: Numbers) -> Numbers:
        """The part of the shared memory of a kernel that is static, where it is known."""
        return np.full(len(rows), -1, np.int64)

    def shapes(self, which: str, rows: Numbers) -> LaunchShapes:
        """``grid`` or ``block`` of kernels."""
        values, places = self.found.values(which, rows)
        return launch_shapes([value if isinstance(value, list) else [] for value in values], places)

    def launched_shapes(self, which: str, calls: Numbers) -> LaunchShapes:
        """``grid`` or ``block`` that the launching calls of kernels state, -1 for no call: only those of HIP do."""
        shapes = self.shapes(which, calls)
        names, places = self.names(np.maximum(calls, 0))
        is_of_threads = np.array([name in _GRIDS_OF_THREADS for name in names], bool)[places] & (calls >= 0)
        if which != "grid" or not is_of_threads.any():
            return shapes
        sizes, blocks = shapes.of_events, np.maximum(self.shapes("block", calls).of_events, 1)
        sizes = np.where(is_of_threads[:, None] & (sizes >= 0), -(-sizes // blocks), sizes)
        return LaunchShapes(np.concatenate([sizes, [[-1] * 3]]), np.arange(len(sizes)))

    def launched_figures(self, figure: str, calls: Numbers) -> Numbers:
        """A figure of GPU work that its launching call states; -1 for no call."""
        return self.found.integers(_OF_LAUNCHES[figure], calls, _LARGEST_FIGURES.get(figure, LARGEST_ID))

    def thread_names(self) -> list[tuple[Any, Any, str]]:
        """Process, thread and name."""
        return self.found.thread_names

    @cached_property
    def host_rows(self) -> list[str]:
        """The device of each track below that of its process, such as ``waits``; empty: the track is a thread."""
        return [""] * len(self.found.tracks)


def launch_shapes(values: list[list[Any]], places: Numbers) -> LaunchShapes:
    """Lists of three sizes as columns; anything else counts as not stated."""
    known = [
        value
        if len(value) == 3 and all(type(size) is int and 0 <= size <= _LARGEST_SIZE for size in value)
        else [-1] * 3
        for value in [*values, []]
    ]
    return LaunchShapes(np.array(known, np.int64), places)


def row_numbers(values: Iterable[Any]) -> list[int]:
    """Process or thread ids as numbers of 32 bits: themselves, the digits in them (``"stream 7"``), or 0.

    Kineto writes some as signed numbers of 32 bits: -1 for no stream, the lower half of an id of pthreads. Of a larger
    id the first nine digits are its number, or the next number that no other has.
    """
    ids = [str(value) for value in values]
    found = {each: _row_number(each) for each in ids}
    numbers = FreeNumbers(number for number in found.values() if number <= LARGEST_ID)
    for each, number in found.items():
        if number > LARGEST_ID:
            found[each] = numbers.take(int(str(number)[:9]))
    return [found[each] for each in ids]


def _row_number(row_id: str) -> int:
    """The number in an id, which may be too large for 32 bits."""
    if _NEGATIVE.fullmatch(row_id) and -int(row_id) <= 1 << 31:
        return int(row_id) + (1 << 32)
    digits = _DIGITS.search(row_id)
    return int(digits[0]) if digits else 0


def _kind(category: str) -> int:
    known = category.lower()
    return _KINDS.get(known, CALL if "runtime" in known or "driver" in known else OTHER)
