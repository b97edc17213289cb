"""The processes of a recording: a file of a job may hold several, and no process waits for the work of another.

Ids are unique among the processes of a recording (`collector.recording.joined_captures`), so that launches are found by
them alone. What is asked of all calls or of all streams is asked of each process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.shared_values import shared
from collector.recording.distinct import distinct_codes, distinct_values
from collector.recording.first_rows import first_rows, look_up

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_OF_PROCESSES = (1, 2)
"""``CUpti_ActivityObjectKind`` of a process and of a thread."""
_OF_DEVICES = (3, 4, 5)
"""Those of a device, a context and a stream."""
UNKNOWN = -1
"""The number of the process of work whose process is not known."""


def processes_of_calls(recording: Recording) -> tuple[int, Numbers]:
    """The number of processes that made calls, and for each call the number of its process, from 0 on."""
    return _processes_of_calls(recording)


@shared
def _processes_of_calls(recording: Recording) -> tuple[int, Numbers]:
    distinct, codes = distinct_codes(recording.api_calls.process_id)
    return len(distinct), codes


def processes_of_work(recording: Recording, work: Activities) -> Numbers:
    """For each activity the number of the process that launched it, as `processes_of_calls` counts them.

    Work whose launch was not recorded is that of the process of its context; it is 0 where there is one process only.
    """
    count, of_calls = processes_of_calls(recording)
    if count < 2:
        return np.zeros(len(work), np.int64)
    launches = work.launch_rows()
    found = np.where(launches >= 0, of_calls[launches], UNKNOWN)
    contexts = work.column("context_id").astype(np.int64) + 1  # 0 is no key
    known = np.flatnonzero(found != UNKNOWN)
    ids, first = first_rows(contexts[known])
    own: Numbers = np.where(found == UNKNOWN, look_up(contexts, ids, found[known[first]]), found)
    return own


def calls_for(recording: Recording, work: Activities) -> Mask:
    """The calls of the processes that launched some work; all calls where it is not known who did."""
    of_calls = processes_of_calls(recording)[1]
    own = _processes_for(recording, work)
    return np.ones(len(of_calls), bool) if own is None else np.isin(of_calls, own)


def overheads_for(recording: Recording, work: Activities) -> Mask:
    """The overheads of the processes and devices of some work, and all overheads of which nothing is known."""
    overheads, own = recording.overheads, _processes_for(recording, work)
    if own is None:
        return np.ones(len(overheads), bool)
    of_calls = processes_of_calls(recording)[1]
    ids, first = first_rows(recording.api_calls.process_id.astype(np.int64) + 1)  # 0 is no key
    processes = look_up(overheads.process_id.astype(np.int64) + 1, ids, of_calls[first])
    of_process, of_device = (np.isin(overheads.object_kind, kinds) for kinds in (_OF_PROCESSES, _OF_DEVICES))
    is_others = of_process & (processes != UNKNOWN) & ~np.isin(processes, own)
    is_others |= of_device & ~np.isin(overheads.device_id, distinct_values(work.device_id))
    return ~np.asarray(is_others)


def _processes_for(recording: Recording, work: Activities) -> Numbers | None:
    """The numbers of the processes that launched some work; None: all there are, or it is not known."""
    if processes_of_calls(recording)[0] < 2:
        return None
    own = distinct_values(processes_of_work(recording, work))
    return None if UNKNOWN in own else own
