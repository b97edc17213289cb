"""Completeness: the counts of API calls equal the counts of records."""

import ctypes
import threading
from collections import Counter

import numpy as np
from graph_nodes import assert_graphs
from timed_programs import STICKY_SECONDS

import collector


def test_a_million_launches_are_a_million_kernels(cuda, million):
    launches, batch = million, million // 50
    stream = cuda.stream()
    with collector.trace(strict=True, kinds=("kernels", "driver_api")) as step:
        for _ in range(launches // batch):
            cuda.launch_empty(batch, stream)
            cuda.synchronize()
    ledger = step.ledger
    assert ledger.launches_seen == launches
    assert ledger.kernels == launches
    assert ledger.complete, ledger.losses()
    kernels = step.kernels
    assert len(np.unique(kernels.correlation_id)) == launches
    assert (kernels.duration_ns > 0).all()


def test_a_million_launches_without_a_wait_in_between(cuda, million):
    # The device's own buffer pool runs full here; what CUPTI then loses must be in the ledger.
    launches = million
    stream = cuda.stream()
    with collector.trace(strict=True, kinds=("kernels",)) as step:
        cuda.launch_empty(launches, stream)
    ledger = step.ledger
    assert ledger.kernels + ledger.invalid_timestamps + ledger.records_dropped == launches
    assert ledger.kernels == launches, ledger.losses()


def test_eight_threads_lose_nothing(cuda, million):
    threads, launches = 8, million // 50
    streams = [cuda.stream() for _ in range(threads)]
    ids = {}

    def work(index):
        cuda.use()
        ids[index] = threading.get_native_id()
        with collector.annotate(f"worker{index}"):
            cuda.launch_empty(launches, streams[index])

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    with collector.trace(strict=True) as step:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert step.ledger.complete, step.ledger.losses()
    recording = step.recording
    per_stream = Counter(recording.kernels.stream_id.tolist())
    assert (len(per_stream), set(per_stream.values())) == (threads, {launches})
    per_worker = Counter(recording.annotations_of(recording.kernels))
    assert per_worker == {f"worker{index}": launches for index in range(threads)}
    calls = recording.api_calls[recording.launch_rows(recording.kernels.correlation_id)]
    assert Counter(calls.thread_id.tolist()) == dict.fromkeys(ids.values(), launches)


def test_a_hundred_sessions_around_fifty_launches(cuda):
    stream = cuda.stream()
    for round_ in range(100):
        cuda.launch_empty(7, stream)  # before the session: must not appear
        cuda.synchronize()
        with collector.trace(strict=True) as step:
            cuda.launch_empty(50, stream)
        assert len(step.kernels) == 50, f"round {round_}: {step.ledger.losses()}"
        assert step.ledger.launches_seen == 50
        assert step.ledger.complete, f"round {round_}: {step.ledger.losses()}"


def test_work_that_is_still_running_when_the_step_ends_is_part_of_it(cuda):
    stream = cuda.stream()
    with collector.trace(strict=True) as step:
        for _ in range(20):
            cuda.launch("spin", ctypes.c_longlong(5_000_000), stream=stream)
    assert len(step.kernels) == 20
    assert (step.kernels.duration_ns >= 4_900_000).all()


def test_work_that_nothing_waits_for_is_unfinished(cuda):
    stream = cuda.stream()
    with collector.trace(strict=True, synchronize=False) as step:
        cuda.launch_empty(5, stream)
        cuda.synchronize()
        cuda.launch("spin", ctypes.c_longlong(1_000_000_000), stream=stream)
    cuda.synchronize()
    assert (step.ledger.kernels, step.ledger.unfinished) == (5, 1), step.ledger.losses()
    assert step.recording.invalid.kernels.names() == ["spin"]


def test_after_an_illegal_address_the_error_explains_the_missing_times(run_program, show):
    printed = run_program(
        """
import ctypes
import collector
from cuda_program import CudaProgram

cuda = CudaProgram()
stream = cuda.stream()
with collector.trace(strict=True) as step:
    cuda.launch_empty(100, stream)
    cuda.synchronize()
    cuda.launch("write_to", ctypes.c_void_p(0x10), stream=stream)
    try:
        cuda.synchronize()
    except RuntimeError as error:
        print(error)
ledger = step.ledger
print(step.summary())
assert ledger.kernels + ledger.lost_with_context == ledger.launches_seen == 101, ledger.losses()
assert ledger.lost_with_context == ledger.invalid_timestamps, ledger.losses()
import os
os._exit(0)
""",
        seconds=STICKY_SECONDS,
    )
    show(printed.strip().splitlines()[-1])
    assert "cuCtxSynchronize returned CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS)" in printed


def test_graphs_captured_before_during_and_between_sessions(cuda):
    stream, nodes, launches = cuda.stream(), 40, 25

    def capture():
        with cuda.captured(stream) as graphs:
            cuda.launch_empty(nodes, stream)
        return graphs[0]

    before = capture()
    cuda.launch_graph(before, stream)
    cuda.synchronize()
    with collector.trace(strict=True) as first:
        during = capture()
        for _ in range(launches):
            cuda.launch_graph(before, stream)
            cuda.launch_graph(during, stream)
    between = capture()
    with collector.trace(strict=True) as second:
        for graph in (before, during, between):
            for _ in range(launches):
                cuda.launch_graph(graph, stream)
    graphs = ("captured before", "captured during", "captured between")
    for number, step in enumerate((first, second)):
        kernels = step.kernels
        wanted = {graph: {"empty_kernel": nodes} for graph in graphs[: number + 2]}
        assert_graphs(kernels, wanted, launches, f"session {number + 1}: {step.ledger.losses()}")
        assert (kernels.graph_id != 0).all()
        assert len(np.unique(kernels.graph_node_id)) == len(wanted) * nodes
        per_launch = Counter(kernels.correlation_id.tolist())
        # All nodes of one launch share its correlation id.
        assert Counter(per_launch.values()) == {nodes: len(wanted) * launches}, f"session {number + 1}"
        assert step.ledger.invalid_timestamps == 0


def test_graph_launches_do_not_eat_the_cards_memory(cuda, million):
    # With 13.0.85, kernel records of graphs kept CUPTI's device buffers for ever.
    stream = cuda.stream()
    with cuda.captured(stream) as graphs:
        cuda.launch_empty(1000, stream)
    cuda.launch_graph(graphs[0], stream)
    cuda.synchronize()
    free_before = cuda.free_memory()
    with collector.trace(strict=True, kinds=("kernels",)) as step:
        for _ in range(million // 1000):
            cuda.launch_graph(graphs[0], stream)
            cuda.synchronize()
    ledger = step.ledger
    assert ledger.kernels + ledger.invalid_timestamps + ledger.records_dropped == million
    assert ledger.kernels == million, ledger.losses()
    assert free_before - cuda.free_memory() < 1 << 30


def test_a_forked_child_neither_hangs_nor_disturbs_its_parent(run_program):
    printed = run_program(
        """
import os, signal, warnings
import collector
from cuda_program import CudaProgram
cuda = CudaProgram()
stream = cuda.stream()
with collector.trace(strict=True) as step:
    cuda.launch_empty(10, stream)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        with collector.annotate("in the child"):
            pass
        os._exit(0)
    _, status = os.waitpid(child, 0)
    cuda.launch_empty(10, stream)
print(os.waitstatus_to_exitcode(status), len(step.kernels))
"""
    )
    assert printed.split() == ["0", "20"]


def test_the_interpreter_exits_cleanly_with_a_session_open(run_program):
    run_program(
        """
import collector
from cuda_program import CudaProgram
cuda = CudaProgram()
collector.trace(strict=True).__enter__()
cuda.launch_empty(1000, cuda.stream())
"""
    )


def test_a_session_may_open_before_cuda_is_initialised(run_program):
    printed = run_program(
        """
import collector
from cuda_program import CudaProgram
with collector.trace(strict=True) as step:
    cuda = CudaProgram()
    cuda.launch_empty(123, cuda.stream())
print(len(step.kernels))
"""
    )
    assert printed.split() == ["123"]
