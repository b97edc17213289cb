"""The Chrome traces of Triton's profiler Proton (``proton.start(data="trace")``), in the words of a profiler's dialect.

One process holds the threads of the host and the streams, whose numbers only the names of the threads state
(``GPU Stream 7``). Every event states its path of scopes in ``call_stack``; that of a kernel ends with the kernel.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from collector.formats.chrome_events import per_place
from collector.formats.profiler_dialect import KERNEL, OP, OTHER, Names, ProfilerDialect
from collector.formats.proton_words import FLOPS, ROOT, frame_name
from collector.formats.torch_op_details import OpDetails
from collector.recording.annotation_details import Details

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.formats.chrome_events import ChromeEvents, Numbers

_STACK, _METRICS = "call_stack", "metrics"
_KINDS = {"kernel": KERNEL, "scope": OP, "metric": OP}
"""Category -> kind; a ``metric`` is a scope with metrics."""
_STREAM = re.compile(r"GPU Stream ([0-9]{1,9})")
_LARGEST_FIGURE = (1 << 63) - 1


def is_proton(found: ChromeEvents) -> bool:
    """Whether all slices are kernels and scopes with a call stack."""
    rows = found.rows("X")
    return bool(len(rows) and found.has(_STACK, rows).all()) and set(found.categories(rows)[0]) <= _KINDS.keys()


class ProtonDialect(ProfilerDialect):
    """Proton's traces."""

    arguments_of: Mapping[int, frozenset[str]] = {
        **dict.fromkeys(ProfilerDialect.arguments_of, frozenset[str]()),
        KERNEL: frozenset({_STACK}),
        OP: frozenset({_STACK, "scope_id"}),
    }
    launch_arguments: ClassVar[frozenset[str]] = frozenset()

    def kinds(self, rows: Numbers) -> npt.NDArray[np.integer]:
        """See `ProfilerDialect`."""
        categories, index = self.found.categories(rows)
        return per_place(categories, lambda category: _KINDS.get(category, OTHER)).astype(np.uint8)[index]

    def names(self, rows: Numbers) -> Names:
        """See `ProfilerDialect`. The name of a scope with metrics has their values, too; its path does not."""
        names, index = self.found.names(rows)
        stacks, places = self.found.values(_STACK, rows)
        frames = [path[-1] if (path := _path(stack)) else "" for stack in stacks]
        is_named = np.array([*map(bool, frames), False], bool)[places]
        return Names([*names, *frames], np.where(is_named, places + len(names), index))

    def streams(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._track_streams[self.found.track_numbers(rows)]

    @cached_property
    def _track_streams(self) -> Numbers:
        names = {(str(process), str(thread)): name for process, thread, name in self.found.thread_names}
        tracks = [names.get((str(process), str(thread)), "") for process, thread in self.found.tracks]
        numbers = per_place(tracks, lambda name: int(stream[1]) if (stream := _STREAM.fullmatch(name)) else -1)
        return np.where(numbers < 0, np.array([*self.thread_numbers, 0], np.int64), numbers)

    def stated_ops(self, rows: Numbers) -> Names:
        """See `ProfilerDialect`. The scopes around a kernel are its op."""
        stacks, places = self.found.values(_STACK, rows)
        return Names(["/".join(_path(stack)[:-1]) for stack in stacks], places)

    def op_details(self, rows: Numbers) -> OpDetails:
        """See `ProfilerDialect`."""
        metrics, places = self.found.values(_METRICS, rows)
        return OpDetails([*map(_details, metrics), Details()], np.where(places < 0, len(metrics), places))

    def figures(self, figure: str, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`. Proton states none."""
        return np.full(len(rows), -1, np.int64)


def _path(stack: Any) -> list[str]:
    """The frames of a call stack without the profile itself; empty for anything else."""
    if not isinstance(stack, list) or not all(isinstance(frame, str) for frame in stack):
        return []
    return [frame_name(frame) for frame in (stack[1:] if stack[:1] == [ROOT] else stack)]


def _details(metrics: Any) -> Details:
    """The operations and bytes among the metrics of a scope, whose values are text."""
    if not isinstance(metrics, dict):
        return Details()
    flops = sum(_figure(value) for name, value in metrics.items() if FLOPS.fullmatch(name))
    return Details(flops=min(flops, _LARGEST_FIGURE), num_bytes=_figure(metrics.get("bytes")))


def _figure(value: Any) -> int:
    """A metric as the nearest whole number; 0: it is missing or impossible."""
    try:
        number = Decimal(value) if isinstance(value, (str, int)) else Decimal(0)
    except InvalidOperation:
        return 0
    return round(number) if number.is_finite() and 0 <= number <= _LARGEST_FIGURE else 0
