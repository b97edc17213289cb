"""Times of each device by classes and number of running activities, from one sweep over its activities."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import Activities, WorkClass, step_window, whole_graph_rows, work_classes
from collector.analysis.answer import Window
from collector.analysis.shared_values import shared
from collector.recording.schema import ACTIVITY_TABLES
from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]


EXPOSURE = (WorkClass.COMPUTE, WorkClass.GRAPH, WorkClass.COMMUNICATION, WorkClass.COPY, WorkClass.MEMSET)
"""A class is exposed while none of those before it runs, so that the exposed times add up to the busy time.

A whole graph comes directly after compute, because it is made of kernels of compute for the most part: communication
beside it counts as hidden.
"""


class DeviceTimes(NamedTuple):
    """Times of one device in a window, ns."""

    device: int
    activities: int
    window: Window
    by_classes: Numbers
    """Time in which exactly a set of classes ran, indexed by the set: bit c stands for `WorkClass` c."""
    by_number: Numbers
    """Time in which a number of activities ran at once, indexed by the number; the first entry is the idle time."""

    @property
    def busy_ns(self) -> int:
        """Time in which anything ran."""
        return int(self.by_classes[1:].sum())

    @property
    def mean_concurrency(self) -> float:
        """Mean number of activities that ran at once, over the window."""
        return ratio(int((self.by_number * np.arange(len(self.by_number))).sum()), self.window.length_ns)

    def exposed(self, work_class: WorkClass) -> int:
        """Time in which a class ran, and no class that comes before it in `EXPOSURE`."""
        return self.ran(work_class, without=EXPOSURE[: EXPOSURE.index(work_class)])

    def ran(self, *classes: WorkClass, without: Sequence[WorkClass] = ()) -> int:
        """Time in which all of ``classes`` ran at once, and none of ``without``."""
        wanted, unwanted = (sum(1 << each for each in chosen) for chosen in (classes, without))
        sets = np.arange(len(self.by_classes))
        return int(self.by_classes[((sets & wanted) == wanted) & ((sets & unwanted) == 0)].sum())


@shared
def device_times(recording: Recording, window: str) -> list[DeviceTimes]:
    """The times of each device with activities or launches of whole graphs, in order of the devices' ordinals.

    A device that has some in the whole recording, of which this is a part, is idle in the part.

    Args:
        recording: the recording of the activities.
        window: ``step`` for the whole step, or ``span``, from the first to the last activity of each device.

    Raises:
        ValueError: there is no such window.
    """
    step = step_window(recording, window)
    *classes, graph_classes = work_classes(recording)
    graphs = whole_graph_rows(recording)
    tables = [
        *((getattr(recording, name), own) for name, own in zip(ACTIVITY_TABLES, classes, strict=True)),
        (recording.graph_launches[graphs], graph_classes[graphs]),
    ]
    found = swept_times(
        [(table.start_ns, table.end_ns, table.device_id, own) for table, own in tables],
        window,
        None if step is None else (step.start_ns, step.end_ns),
    )
    if step is None:
        return found
    idle = [_idle_times(device, step) for device in recording.idle_devices]
    return sorted([*found, *idle], key=lambda times: times.device)


def exposed_in_windows(recording: Recording, starts: Numbers, ends: Numbers) -> Numbers:
    """The exposed times of all devices together: a row for each class of `EXPOSURE`, a column for each window.

    Args:
        recording: the recording of the activities.
        starts: the begins of the windows, ns.
        ends: their ends, ns.
    """
    found = np.zeros((len(EXPOSURE), len(starts)), np.int64)
    for _, work in Activities.with_graphs(recording).by_device():
        covered = np.zeros(len(starts), np.int64)
        for place, row in enumerate(found):
            before, covered = covered, work.union(*EXPOSURE[: place + 1]).covered(starts, ends)
            row += covered - before
    return found


def _idle_times(device: int, window: Window) -> DeviceTimes:
    """The times of a device without work in a window."""
    return DeviceTimes(device, 0, window, np.zeros(1 << len(WorkClass), np.int64), np.array([window.length_ns]))


def swept_times(
    activities: Sequence[tuple[Numbers, Numbers, npt.NDArray[np.uint32], npt.NDArray[np.uint8]]],
    window: str,
    bounds: tuple[int, int] | None,
) -> list[DeviceTimes]:
    """The times of each device, in order of the devices' numbers.

    Args:
        activities: starts, ends, numbers of devices and `WorkClass` of several sets of activities.
        window: the name of the window.
        bounds: its start and end; None: the span of each device's activities.
    """
    return [
        DeviceTimes(device, number, Window(window, *(bounds or (first_ns, last_ns))), by_classes, by_number)
        for device, number, first_ns, last_ns, by_classes, by_number in convert_extension.sweep_devices(
            activities, bounds
        )
    ]


def ratio(part: int, whole: int) -> float:
    """``part`` divided by ``whole``; 0 if the whole is 0."""
    return part / whole if whole else 0.0
