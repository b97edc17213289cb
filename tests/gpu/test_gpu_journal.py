"""Journals: the records of a program before it was killed, while another thread flushes CUPTI."""

import signal
import threading

import collector

DOOMED = """
import os, resource, signal, time
import collector
from cuda_program import CudaProgram

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
cuda = CudaProgram()
stream = cuda.stream()
cuda.launch_empty(1, stream)
cuda.synchronize()
with collector.trace(strict=True, journal={journal!r}):
    with collector.annotate("doomed"):
        cuda.launch_empty(5000, stream)
    cuda.synchronize()
    time.sleep(2)  # CUPTI is asked for what it has twice a second
    {end}
"""


def test_a_killed_program_leaves_its_kernels(run_program, tmp_path):
    journal = tmp_path / "step.journal"
    run_program(DOOMED.format(journal=str(journal), end="os.kill(os.getpid(), signal.SIGKILL)"), status=-signal.SIGKILL)
    recording = collector.load(journal).recording
    assert set(recording.annotations_of(recording.kernels)) == {"doomed"}
    assert recording.ledger.launches_seen == recording.ledger.kernels == 5000
    assert recording.ledger.interrupted
    # No record ends after the time at which the journal states that it was written.
    assert recording.ledger.invalid_timestamps == recording.ledger.early == recording.ledger.late == 0
    assert recording.environment["cuda_version"] >= 12000


def test_a_program_that_aborts_leaves_its_kernels(run_program, tmp_path):
    journal = tmp_path / "step.journal"
    run_program(DOOMED.format(journal=str(journal), end="os.abort()"), status=-signal.SIGABRT)
    assert len(collector.load(journal).recording.kernels) == 5000


def test_nothing_is_lost_while_a_journal_is_kept(cuda, million, tmp_path):
    threads, launches = 4, million // 20
    streams = [cuda.stream() for _ in range(threads)]

    def work(stream):
        cuda.use()
        with collector.annotate("work"):
            cuda.launch_empty(launches, stream)

    workers = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    with collector.trace(strict=True, journal=tmp_path / "step.journal") as step:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert step.ledger.complete, step.ledger.losses()
    assert step.ledger.kernels == step.ledger.launches_seen == threads * launches
    assert list(tmp_path.iterdir()) == []
