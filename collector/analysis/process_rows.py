"""The processes of a recording: a file of a job may hold several, and no process waits for the work of another.

Ids are unique among the processes of a recording (`collector.recording.joined_captures`), so that launches are found by
them alone. Questions about all calls or all streams are answered for each process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.shared_values import shared
from collector.recording.distinct import distinct_codes, distinct_values
from collector.recording.first_rows import first_rows, look_up
from collector.recording.thread_waits import thread_numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

_OF_PROCESSES = (1, 2)
"""``CUpti_ActivityObjectKind`` of a process and of a thread."""
UNKNOWN = -1
"""The process number of work whose process is unknown."""


@shared
def processes_of_calls(recording: Recording) -> Numbers:
    """For each call the number of its process, from 0 on."""
    return distinct_codes(recording.api_calls.process_id)[1]


@shared
def threads_of_calls(recording: Recording) -> Numbers:
    """A number for the thread of each call, as `thread_numbers` gives it."""
    return thread_numbers(recording.api_calls.process_id, recording.api_calls.thread_id)


def has_several_processes(recording: Recording) -> bool:
    """Whether the calls are those of more than one process."""
    processes = recording.api_calls.process_id
    return len(processes) > 0 and bool(processes.min() != processes.max())


def processes_of_launches(recording: Recording, work: Activities) -> Numbers:
    """For each activity the number in `processes_of_calls` of the process that launched it; -1: unknown."""
    launches = work.launch_rows()
    return np.where(launches >= 0, np.append(processes_of_calls(recording), UNKNOWN)[launches], UNKNOWN)


def processes_of_work(recording: Recording, work: Activities) -> Numbers:
    """Like `processes_of_launches`; work whose launch was not recorded is that of the process of its context.

    All work is that of the process if there is only one.
    """
    if not has_several_processes(recording):
        return np.zeros(len(work), np.int64)
    found = processes_of_launches(recording, work)
    contexts = work.column("context_id").astype(np.int64) + 1  # 0 is no key
    known = np.flatnonzero(found != UNKNOWN)
    ids, first = first_rows(contexts[known])
    own: Numbers = np.where(found == UNKNOWN, look_up(contexts, ids, found[known[first]]), found)
    return own


@shared
def processes_of_overheads(recording: Recording) -> Numbers:
    """For each overhead the number of its process, as `processes_of_calls` counts them; -1: unknown.

    A process that an overhead states, and that called nothing, has a number that no call has.
    """
    overheads, calls = recording.overheads, recording.api_calls
    if not len(calls):
        return np.full(len(overheads), UNKNOWN, np.int64)
    ids, first = first_rows(calls.process_id.astype(np.int64) + 1)  # 0 is no key
    found = look_up(overheads.process_id.astype(np.int64) + 1, ids, processes_of_calls(recording)[first])
    is_stated = np.isin(overheads.object_kind, _OF_PROCESSES)
    # A process 0 is not known: it may be any other one.
    is_stated &= (found != UNKNOWN) | ((overheads.process_id != 0) & (calls.process_id.min() != 0))
    return np.where(is_stated, np.where(found == UNKNOWN, len(ids), found), UNKNOWN)


def processes_beside(recording: Recording, work: Activities) -> tuple[int, ...]:
    """The processes whose rows are beside some work: those that launched it, and the unknown one.

    Empty: all are, because there is one process, or because it is not known what launched the work.
    """
    if not has_several_processes(recording) and processes_of_overheads(recording).max(initial=0) == 0:
        return ()
    own = distinct_values(processes_of_launches(recording, work))
    own = own[own != UNKNOWN]
    return (UNKNOWN, *own.tolist()) if len(own) else ()
