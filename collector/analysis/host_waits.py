"""The waits of the host for devices, by thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.process_rows import processes_of_calls, threads_of_calls
from collector.analysis.shared_values import shared
from collector.recording.api_functions import ApiRole, have_role
from collector.recording.thread_waits import UNKNOWN_THREAD, ThreadWaits

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]


@shared
def waiting_threads(recording: Recording) -> Numbers:
    """The number of the thread of each call, as `ThreadWaits` takes it."""
    return np.where(recording.api_calls.thread_id == 0, UNKNOWN_THREAD, threads_of_calls(recording))


def wait_rows(recording: Recording, beside: tuple[int, ...]) -> Numbers:
    """The calls that wait for a device or a stream, of the processes that `processes_beside` gives."""
    calls = recording.api_calls
    is_wait = have_role(calls.name_id, recording.strings, ApiRole.WAIT)
    if beside:
        is_wait &= np.isin(processes_of_calls(recording), beside)
    return np.flatnonzero(is_wait)


def thread_waits(recording: Recording, rows: Numbers) -> ThreadWaits:
    """Some calls as waits of their threads."""
    calls = recording.api_calls
    return ThreadWaits(waiting_threads(recording)[rows], calls.start_ns[rows], calls.end_ns[rows])


def launches_by_thread(recording: Recording, launches: Numbers) -> tuple[Numbers, Numbers]:
    """For each call its start and the number of its thread, as `ThreadWaits` has it; 0 for the row -1."""
    times, threads = np.append(recording.api_calls.start_ns, 0), np.append(waiting_threads(recording), UNKNOWN_THREAD)
    return times[launches], threads[launches]
