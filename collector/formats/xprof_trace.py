"""The Chrome traces of XProf, TensorFlow 2 and JAX (``HOST.trace.json.gz``), in the words of a profiler's dialect.

Their events have no category: a process ``/device:GPU:N`` is a GPU, its threads ``Stream #S(Compute)`` are streams, and
its other threads (steps, modules, name scopes) show the same time under other names. All arguments are text.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from collector.formats import profile_stats
from collector.formats.capture_builder import device_ids, is_api_name
from collector.formats.chrome_dialects import XPROF_GPU
from collector.formats.chrome_events import LARGEST_ID, per_place, text
from collector.formats.free_numbers import FreeNumbers
from collector.formats.profile_stats import ACTIVITY, LABEL, MEMCPY_DETAILS, MEMSET_DETAILS
from collector.formats.profiler_dialect import (
    CALL,
    GPU_ANNOTATION,
    KERNEL,
    LARGEST_SEQUENCE,
    MEMCPY,
    MEMORY,
    MEMORY_ARGUMENTS,
    MEMSET,
    OP,
    OTHER,
    SIDE,
    SYNC,
    LaunchShapes,
    Names,
    ProfilerDialect,
    launch_shapes,
)
from collector.formats.profiler_hosts import is_device
from collector.formats.timeline_side_rows import ARGUMENTS as SIDE_ARGUMENTS
from collector.formats.timeline_side_rows import SideRows
from collector.formats.torch_op_details import OpDetails
from collector.formats.xprof_details import ARGUMENTS as DETAILS
from collector.formats.xprof_details import TABLES, num_bytes_in, number_in, shape_in, shared_bytes_in, work_details
from collector.protos import Activity
from collector.recording.capture import ASYNC_NOT_KNOWN
from collector.recording.first_rows import distinct_rows
from collector.recording.schema import ACTIVITY_KINDS
from collector.stepstats.activity_arguments import UNNAMED
from collector.stepstats.labels import implied_op
from collector.stepstats.shown_tables import SIDE_TABLES
from collector.timeline.op_arguments import ARGUMENTS as OP_ARGUMENTS
from collector.timeline.op_arguments import details_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from collector.formats.capture_builder import CaptureBuilder, Column
    from collector.formats.chrome_events import ChromeEvents, Numbers
    from collector.formats.xprof_details import Words
    from collector.recording.annotation_details import Details
    from collector.recording.row_arguments import ArgumentColumn

_STREAM = re.compile(r"Stream #(?:([0-9]{1,9})|memcpy)\b")
"""Copies whose stream a step of TensorFlow does not state are a row of their own in our profiles."""
_COPY = re.compile(r"(?:Memcpy([HDAP])2([HDAP])|Copy(Host|Device)To(Host|Device))")
"""The name of a copy: that of CUDA or that of ROCm, where the details state an unknown kind."""
_PYTHON_FUNCTION = "$"
"""Prefix of the names of functions that the Python tracer recorded."""
_OF_TASK = r"job:[^/]+/replica:\d+/task:\d+ "
_OF_STEP = r"(?:(?:(?:run \S+ )?rank|process) \d+ )?(?:step \d+ )?"
"""The run, rank or process and the step of a merged profile before the name of a thread."""
_OTHER_ROW = re.compile(
    f"(?:{_OF_TASK})?" + _OF_STEP + "(Steps|" + "|".join(side.device for side in SIDE_TABLES.values()) + ")"
)
"""Threads of the host, in our own profiles, that hold neither calls nor annotations; of several ranks, or of several
steps that begin together, each has such threads."""
_OWNER = re.compile(f"{_OF_TASK}|{_OF_STEP}")
"""The prefix of the names of host threads in this project's profiles, if these are of several processes."""
_HLO_OP = "hlo_op"
_OPS = (profile_stats.OP, "level 0", _HLO_OP, "annotation")
"""Arguments that name the op, the first that is there counts."""
_XLA_MODULE = "XlaModule:"
"""The value of ``tf_op`` that XLA states of all work of all of its modules."""
_HLO_PATH = ("prefix", "name", "hlo_module", _HLO_OP)
"""The arguments of work of XLA: the program's own name of the op, without the prefix that all ops of its module share,
and XLA's names. The op has none of its own where XLA made it; the prefix is then that of other ops."""
_SIDE_KINDS = {profile_stats.KINDS[ACTIVITY_KINDS[table]]: table for table in (*SIDE_TABLES, "graph_launches")}
"""Values of the stat `ACTIVITY` for rows that state all columns of their tables."""
_HOST_KINDS = {profile_stats.KINDS[Activity.ANNOTATION]: OP, profile_stats.KINDS[Activity.API_CALL]: CALL}
"""Its values for ops and calls; rows of all other kinds are ranges."""
_CORRELATIONS = (profile_stats.CORRELATION, profile_stats.LAUNCH_CORRELATION)

_ENDS = {
    "from_device": "src_device_id",
    "from_context": "src_context_id",
    "to_device": "dst_device_id",
    "to_context": "dst_context_id",
}
"""Argument of a copy in our own profiles -> column."""
_VALUE = "value"
"""The argument of a memset in our own profiles."""
_FIGURES = {"graph id": "graph", "graph node id": "graph_node"}
"""Figure -> the argument that our own profiles have."""
_OF_WORK = frozenset({*_OPS, *_FIGURES.values(), profile_stats.CORRELATION, "context_id"})
_SEQUENCE = "seq"
"""The argument of annotations in our own profiles with the number of autograd."""
_OF_TABLES = {
    "kernels": ("cluster", "local_bytes_per_thread", "launch_type", "priority", "graph_degree"),
    "memcpys": ("graph_degree",),
    "memsets": ("graph_degree",),
    "api_calls": ("return_value",),
    "annotations": ("color", "domain", "category", "payload", _SEQUENCE),
}
"""Table -> arguments of its rows in our own profiles that become columns."""
_CONTEXT = re.compile(r"\$\$([0-9]{1,9})")
"""The value of ``context_id`` in profiles of XLA."""


class XprofDialect(ProfilerDialect):
    """XProf's traces."""

    arguments_of: Mapping[int, frozenset[str]] = {
        KERNEL: frozenset({*_OF_WORK, *DETAILS, UNNAMED, *_OF_TABLES["kernels"]}),
        MEMCPY: frozenset({*_OF_WORK, *DETAILS, *_ENDS, *_OF_TABLES["memcpys"]}),
        MEMSET: frozenset({*_OF_WORK, *DETAILS, _VALUE, *_OF_TABLES["memsets"]}),
        **dict.fromkeys((GPU_ANNOTATION, OP, CALL, OTHER), frozenset({*_CORRELATIONS, ACTIVITY, UNNAMED})),
        SIDE: frozenset({*_CORRELATIONS, ACTIVITY, LABEL, UNNAMED, *SIDE_ARGUMENTS}),
        SYNC: frozenset(),
        MEMORY: MEMORY_ARGUMENTS,
    }
    launch_arguments: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, found: ChromeEvents) -> None:
        """Determine the processes that are GPUs, and their threads that are streams."""
        super().__init__(found)
        units = {
            pid: f"{name} gpu:{gpu[1]}" for pid, name in found.process_names.items() if (gpu := XPROF_GPU.match(name))
        }
        numbers = device_ids(units.values())  # of several ranks each may have a GPU of the same number
        self._device_of = {pid: numbers[unit] for pid, unit in units.items()}
        self._is_ours = found.argument_counts()[ACTIVITY] > 0
        if self._is_ours:
            self.arguments_of = {
                **self.arguments_of,
                OP: self.arguments_of[OP] | {LABEL, *OP_ARGUMENTS, *_OF_TABLES["annotations"]},
                CALL: self.arguments_of[CALL] | {LABEL, *_OF_TABLES["api_calls"]},
            }

    @cached_property
    def _track_threads(self) -> list[str]:
        threads = self.found.described_threads
        return [
            str(threads.get(track, {}).get("name")) if all(isinstance(part, int) for part in track) else "None"
            for track in self.found.tracks
        ]

    @cached_property
    def _process_numbers(self) -> list[int]:
        """The process of each track: profiles of ours have the threads of several processes in one plane."""
        owners = (found[0] if (found := _OWNER.match(thread)) else "" for thread in self._track_threads)
        stated = (process or 0 for process in self._stated_numbers("process"))
        tracks = list(zip(super()._process_numbers, owners, stated, strict=True))
        numbers = FreeNumbers()
        processes = sorted(dict.fromkeys(tracks), key=lambda process: not process[2])  # the stated ones come first
        number_of = {process: numbers.take(process[2] or process[0]) for process in processes}
        return [number_of[process] for process in tracks]

    @cached_property
    def thread_numbers(self) -> list[int]:
        """The number of each track's thread; the lines of other tracks have numbers that no stated thread has."""
        stated = list(self._stated_numbers("thread"))
        taken = {number for number in stated if number is not None}
        numbers = FreeNumbers(taken)
        return [
            number if number is not None else numbers.take(own) if own in taken else own
            for own, number in zip(super().thread_numbers, stated, strict=True)
        ]

    def _stated_numbers(self, name: str) -> Iterator[int | None]:
        """The number of the ``process`` or ``thread`` that profiles of ours state of each track."""
        threads = self.found.described_threads
        for track in self.found.tracks:
            stated = threads.get(track, {}).get(name) if all(isinstance(part, int) for part in track) else None
            yield stated if type(stated) is int and 0 <= stated <= LARGEST_ID else None

    @cached_property
    def _track_devices(self) -> Numbers:
        """The GPU of each track, -1 for those of the host."""
        known = (int, str)
        return np.array(
            [self._device_of.get(pid, -1) if isinstance(pid, known) else -1 for pid, _ in self.found.tracks], np.int64
        )

    @cached_property
    def _is_of_device(self) -> npt.NDArray[np.bool_]:
        """Whether each track is one of a GPU or, as those of TPUs, of another device."""
        names = self.found.process_names
        known = (int, str)
        processes = (names.get(pid, "") if isinstance(pid, known) else "" for pid, _ in self.found.tracks)
        return np.array([*map(is_device, processes)], bool)

    @cached_property
    def _track_streams(self) -> Numbers:
        """The stream of each track; 0: it is unknown, -1: the track is not a stream."""
        return per_place(self._track_threads, lambda name: int(found[1] or 0) if (found := _STREAM.match(name)) else -1)

    def kinds(self, rows: Numbers) -> npt.NDArray[np.integer]:
        """See `ProfilerDialect`."""
        found = self.found
        tracks = found.track_numbers(rows)
        names, index = found.names(rows)
        has_copied, has_cleared = (found.has(key, rows) for key in (MEMCPY_DETAILS, MEMSET_DETAILS))
        is_cleared = has_cleared | _are(names, lambda name: name.startswith("Memset"))[index]
        is_copy = has_copied | _are(names, lambda name: name.startswith("Memcpy"))[index]
        work = np.where(is_cleared, MEMSET, np.where(is_copy, MEMCPY, KERNEL))
        is_other_row = (_are(self.host_rows, bool) | self._is_of_device)[tracks]
        is_function = _are(names, lambda name: name.startswith(_PYTHON_FUNCTION))[index]
        is_call = found.has(profile_stats.CORRELATION, rows) | _are(names, is_api_name)[index]
        # Waits and operations on memory have the correlation id of their call.
        host = np.where(is_other_row, OTHER, np.where(is_call, CALL, np.where(is_function, OTHER, OP)))
        activities, places = found.values(ACTIVITY, rows)
        stated = per_place(activities, lambda each: _HOST_KINDS.get(text(each), OTHER))[places]
        host = np.where(stated >= 0, stated, host)
        is_whole = found.have_phase("X", rows)
        host = np.where(is_whole, host, OTHER)
        on_gpu = np.where(self._track_streams[tracks] >= 0, work, GPU_ANNOTATION)
        shown = np.where((self._track_devices[tracks] >= 0) & is_whole, on_gpu, host)
        if self._is_merged:
            return shown
        return np.where(is_whole & (self.side_tables(rows).places >= 0), SIDE, shown)

    @cached_property
    def _is_merged(self) -> bool:
        """Whether this is a profile of several processes or steps.

        The devices, contexts and threads that their rows state are numbered by each process for itself.
        """
        return any(found[0] for name in self._track_threads if (found := _OWNER.match(name)))

    def side_tables(self, rows: Numbers) -> Names:
        """See `ProfilerDialect`."""
        activities, places = self.found.values(ACTIVITY, rows)
        tables = list(_SIDE_KINDS.values())
        numbers = per_place(
            activities, lambda each: tables.index(_SIDE_KINDS[text(each)]) if text(each) in _SIDE_KINDS else -1
        )
        return Names(tables, numbers[places])

    def names(self, rows: Numbers) -> Names:
        """See `ProfilerDialect`. Copies and memsets are called as Kineto calls them."""
        names, index = self.found.names(rows)
        if self.found.argument_counts()[UNNAMED]:
            names, index = [*names, ""], np.where(self.found.has(UNNAMED, rows), len(names), index)
        kinds = self.kinds(rows)
        is_copy = np.isin(kinds, (MEMCPY, MEMSET))
        if not is_copy.any():
            return Names(names, index)
        details = work_details(self.found, rows)
        words_of = [*details.words, {}]
        places = np.where(details.places < 0, len(details.words), details.places)
        pairs = (index * len(words_of) + places) * 2 + (kinds == MEMSET)
        distinct, copies = np.unique(pairs[is_copy], return_inverse=True)
        named = []
        for pair, is_memset in (divmod(each, 2) for each in distinct.tolist()):
            name, place = names[pair // len(words_of)], pair % len(words_of)
            named.append(_memset_name(words_of[place]) if is_memset else _copy_name(name, words_of[place]))
        index = index.copy()
        index[is_copy] = len(names) + copies
        return Names(names + named, index)

    def devices(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return np.maximum(self._track_devices[self.found.track_numbers(rows)], 0)

    def streams(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return np.maximum(self._track_streams[self.found.track_numbers(rows)], 0)

    def gpu_rows(self, rows: Numbers) -> tuple[Names, Numbers]:
        """See `ProfilerDialect`. Lines of a GPU show the time of its streams in other words, and have names."""
        return Names(list(map(text, self._track_threads)), self.found.track_numbers(rows)), self.threads(rows)

    def correlations(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        usual, other = (self.found.integers(argument, rows) for argument in _CORRELATIONS)
        return np.maximum(usual, np.maximum(other, 0))

    def stated_ops(self, rows: Numbers) -> Names:
        """See `ProfilerDialect`."""
        texts: list[str] = [""]
        index = np.zeros(len(rows), np.int64)
        for argument in reversed(_OPS):
            if argument == _HLO_OP:
                combinations, places = self.found.distinct_values(_HLO_PATH, rows)
                ops = [_hlo_path(*(text(part or "") for part in parts)) if parts[-1] else "" for parts in combinations]
            else:
                values, places = self.found.values(argument, rows)
                ops = ["" if value == _XLA_MODULE else _op(text(value)) for value in values]
            is_named = np.array([*map(bool, ops), False], bool)[places]
            index = np.where(is_named, places + len(texts), index)
            texts += ops
        # Where GPU work says nothing of its op, it has none: calls of the host hold no ops of other rows.
        return Names(texts, index)

    def op_details(self, rows: Numbers) -> OpDetails:
        """See `ProfilerDialect`. Only our own profiles state any."""
        if not self._is_ours:
            return super().op_details(rows)
        names, of_names = self.names(rows)
        stated, of_stated = self.found.distinct_values((LABEL, *OP_ARGUMENTS), rows)
        first, places = distinct_rows([of_names, of_stated])
        pairs = zip(of_names[first].tolist(), of_stated[first].tolist(), strict=True)
        return OpDetails([_details(names[name], *stated[place]) for name, place in pairs], places)

    @cached_property
    def host_rows(self) -> list[str]:
        """See `ProfilerDialect`."""
        rows = map(_OTHER_ROW.fullmatch, self._track_threads)
        return [found[1].lower() if found else "" for found in rows]

    def figures(self, figure: str, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        if figure in _FIGURES:
            return self.found.integers(_FIGURES[figure], rows, (1 << 53) - 1)
        if figure == "context":
            values, of_value = self.found.values("context_id", rows)
            return per_place(values, _context)[of_value]
        if figure == "bytes":
            return work_details(self.found, rows).numbers(num_bytes_in)
        if figure == "registers per thread":
            return work_details(self.found, rows).numbers(lambda words: number_in(words, "regs", "kernels"))
        if figure == "shared memory":
            return work_details(self.found, rows).numbers(shared_bytes_in)
        return np.full(len(rows), -1, np.int64)

    def static_shared_bytes(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return work_details(self.found, rows).numbers(lambda words: number_in(words, "static_shared", "kernels"))

    def shapes(self, which: str, rows: Numbers) -> LaunchShapes:
        """See `ProfilerDialect`."""
        details = work_details(self.found, rows)
        return launch_shapes([shape_in(words, which) for words in details.words], details.places)

    def copy_columns(self, kind: int, rows: Numbers) -> Mapping[str, Numbers]:
        """See `ProfilerDialect`."""
        details = work_details(self.found, rows)
        is_async = details.numbers(lambda words: number_in(words, "async", "memcpys"))
        columns: dict[str, Numbers] = {"is_async": np.where(is_async < 0, ASYNC_NOT_KNOWN, is_async)}
        if kind == MEMSET:
            return columns | {"value": np.maximum(self.found.integers(_VALUE, rows), 0)}
        ends = {column: self.found.integers(argument, rows) for argument, column in _ENDS.items()}
        target = details.numbers(lambda words: number_in(words, "dest", "memcpys"))
        ends["dst_device_id"] = np.where(ends["dst_device_id"] < 0, target, ends["dst_device_id"])
        return columns | {column: np.maximum(numbers, 0) for column, numbers in ends.items()}

    def op_sequences(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        if not self._is_ours:
            return super().op_sequences(rows)
        return np.maximum(self.found.integers(_SEQUENCE, rows, LARGEST_SEQUENCE) + 1, 0)

    def stated_columns(self, table: str, rows: Numbers, built: CaptureBuilder) -> dict[str, Column]:
        """See `ProfilerDialect`."""
        side = SideRows(self.found)
        if table == "annotations":
            return side.of_range(rows, built) if self._is_ours else {}
        if table == "api_calls":
            return {"return_value": np.maximum(self.found.integers("return_value", rows), 0)} if self._is_ours else {}
        columns: dict[str, Column] = {"graph_degree": side.degrees(rows)}
        if table == "kernels":
            values, places = self.found.values("cluster", rows)
            shapes = launch_shapes([shape_in({"cluster": text(value)}, "cluster") for value in values], places)
            columns |= {f"cluster_{axis}": shapes.axis(place) for place, axis in enumerate("xyz")}
            columns["local_bytes_per_thread"] = np.maximum(self.found.integers("local_bytes_per_thread", rows), 0)
            columns["launch_type"] = side.launch_types(rows)
            columns["priority"] = self.found.signed_integers("priority", rows)
        return columns

    def unread_details(self, table: str, rows: Numbers) -> dict[str, ArgumentColumn]:
        """See `ProfilerDialect`."""
        if table not in TABLES:
            return {}
        return work_details(self.found, rows).unread(table, self.found.argument_counts())


def _are(names: list[str], check: Any) -> Any:
    return np.array([bool(check(name)) for name in names], bool)


def _op(stated: str) -> str:
    """``layer/conv`` of ``layer/conv:Conv2D#shape=(2)#``; ``ProfilerStep#3`` is a name."""
    path = stated.partition("#")[0] if stated.endswith("#") else stated
    return path.rpartition(":")[0] or path


def _hlo_path(prefix: str, name: str, module: str, hlo_op: str) -> str:
    """``jit(f)/layer/dot_general``, or ``jit_f/fusion.3`` of an op without a name in the program."""
    return "/".join(part.strip("/") for part in ((prefix, name) if name else (module, hlo_op)) if part)


def _details(name: str, label: Any, *given: Any) -> Details:
    """The details of an annotation. A label states the name as the op type where the annotation has none."""
    stated = text(label).removeprefix(f"{name} = ") if isinstance(label, str) else ""
    op, _, inputs = stated.removesuffix(")").rpartition("(")  # which no input of a label has in its name
    known = dict(zip(OP_ARGUMENTS, given, strict=True))
    return details_of({**known, "op": "" if op == implied_op(name) else op, "inputs": inputs})


def _context(stated: Any) -> int:
    found = _CONTEXT.fullmatch(stated) if isinstance(stated, str) else None
    return int(found[1]) if found else -1


def _copy_name(name: str, words: Words) -> str:
    """The name of a copy, whose kind is part of its own name in XProf's profiles."""
    kind = _COPY.match(name)
    ends = [end[0] for end in kind.groups() if end] if kind else []
    stated = "to".join(ends) if ends else words.get("kind", "unknown").replace("_", " ")
    sides = [words.get(key, "unknown").replace("_", " ").capitalize() for key in ("kind_src", "kind_dst")]
    return f"Memcpy {stated} ({' -> '.join(sides)})"


def _memset_name(words: Words) -> str:
    return f"Memset ({words.get('kind', 'unknown').replace('_', ' ').capitalize()})"
