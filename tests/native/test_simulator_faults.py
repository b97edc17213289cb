"""Every fault the simulator can inject, and every misuse it counts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    EXTERNAL_CORRELATION,
    INVALID_KIND,
    MAX_LIMIT_REACHED,
    MULTIPLE_SUBSCRIBERS,
    RUNTIME,
    SUCCESS,
    CuptiClient,
    Record,
)

from collector.errors import CollectorError
from collector.testing import SimulatedGpu

FUTURE_KIND = 77


def kernels_under(fault: str, *, launches: int = 3, **arguments: int) -> tuple[SimulatedGpu, CuptiClient, list[Record]]:
    """Kernel records of a few launches, with the fault armed for the second one unless `after` says otherwise."""
    with SimulatedGpu(start_ns=10**12) as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.inject(fault, **({"after": 1} | arguments))
        for _ in range(launches):
            gpu.launch("k", duration_ns=1_000)
            gpu.synchronize()
            client.flush()
        records = client.records(CONCURRENT_KERNEL)
        struck = {row.name: row.struck for row in gpu.faults()}
        assert struck[fault] > 0
        for record in records:
            record.values["text"] = record.text if record.values["name"] else None
        client.records_dropped = client.dropped()  # type: ignore[attr-defined]
        assert gpu.misuse() == {}
        return gpu, client, records


def test_dropped_record() -> None:
    _, client, records = kernels_under("dropped_record")
    assert len(records) == 2
    assert client.records_dropped == 1  # type: ignore[attr-defined]


def test_lost_activity_record_is_counted_nowhere() -> None:
    _, client, records = kernels_under("lost_activity_record")
    assert len(records) == 2
    assert client.records_dropped == 0  # type: ignore[attr-defined]


def test_zero_timestamps() -> None:
    _, _, records = kernels_under("zero_timestamps")
    assert [(r.start == 0, r.end == 0) for r in records] == [(False, False), (True, True), (False, False)]


def test_zero_end() -> None:
    _, _, records = kernels_under("zero_end")
    assert [(r.start == 0, r.end == 0) for r in records] == [(False, False), (False, True), (False, False)]


def test_reversed_timestamps() -> None:
    _, _, records = kernels_under("reversed_timestamps")
    assert [r.start - r.end for r in records] == [-1_000, 1_000, -1_000]


@pytest.mark.parametrize("shift", [10**9, -(10**9)])
def test_shifted_timestamps(shift: int) -> None:
    _, _, records = kernels_under("shifted_timestamps", value=shift)
    between = [records[1].start - records[0].start, records[2].start - records[1].start]
    assert abs(between[0] - shift) < 100_000
    assert abs(between[1] + shift) < 100_000
    assert records[1].end - records[1].start == 1_000


def test_null_name() -> None:
    _, _, records = kernels_under("null_name")
    assert [record.values["text"] for record in records] == ["k", None, "k"]


def test_pool_exhausted() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        client.set_attribute(2, ctypes.c_size_t(2))
        client.open(CONCURRENT_KERNEL)
        gpu.inject("pool_exhausted", value=10)
        gpu.launch("k", count=25)
        client.flush()
        assert [record.start == 0 for record in client.records()] == [False] * 20 + [True] * 5


def test_lost_api_record() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("lost_api_record", after=1)
        ids = [gpu.launch("k") for _ in range(3)]
        client.flush()
        assert [record.correlation for record in client.records()] == [ids[0], ids[2]]


def test_late_correlation() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME, CONCURRENT_KERNEL, EXTERNAL_CORRELATION)
        client.check("cuptiActivityPushExternalCorrelationId", 5, ctypes.c_uint64(9))
        gpu.inject("late_correlation")
        late, prompt = gpu.launch("a"), gpu.launch("b")
        gpu.synchronize()
        client.flush()
        by_id = {record.correlation: record for record in client.records(EXTERNAL_CORRELATION)}
        kernels = {record.correlation: record for record in client.records(CONCURRENT_KERNEL)}
        assert by_id[prompt].buffer == kernels[prompt].buffer == 0
        assert by_id[late].buffer == 1 > kernels[late].buffer
        assert by_id[late].external_id == 9


def test_half_full_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=800).open(RUNTIME)
        gpu.inject("half_full_buffer")
        for _ in range(30):
            gpu.launch("k")
        client.flush()
        assert [len(data) for data in client.delivered] == [400, 800]


def test_out_of_order_buffer() -> None:
    with SimulatedGpu(deliver="caller") as gpu:
        client = CuptiClient(buffer_bytes=80).open(RUNTIME)
        gpu.inject("out_of_order_buffer")
        ids = [gpu.launch("k") for _ in range(6)]
        client.flush()
        assert [record.correlation for record in client.records()] == [*ids[2:4], *ids[:2], *ids[4:]]


def test_withheld_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=80).open(RUNTIME)
        gpu.inject("withheld_buffer")
        ids = [gpu.launch("k") for _ in range(4)]
        client.flush(forced=True)
        assert [record.correlation for record in client.records()] == ids[2:]
        assert gpu.statistics().buffers_outstanding == 1


def test_cut_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("cut_buffer")
        gpu.launch("k")
        gpu.launch("k")
        client.flush()
        records, end = client.walk(client.delivered[0])
        assert len(client.delivered[0]) == 76
        assert (len(records), end) == (1, MAX_LIMIT_REACHED)


def test_slow_completion() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("slow_completion", value=30)
        gpu.launch("k")
        client.flush()
        assert client.delivered == []
        gpu.wait_until_idle()
        assert len(client.records()) == 1


def test_unknown_kind_is_stepped_over() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.inject("unknown_kind")
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        records, end = client.walk(client.delivered[0])
        assert [(kind, len(data)) for kind, data in records] == [(FUTURE_KIND, 64), (CONCURRENT_KERNEL, 216)]
        assert end == MAX_LIMIT_REACHED


def test_invalid_kind_ends_the_walk() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("k")
        gpu.inject("invalid_kind", after=1)
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        records, end = client.walk(client.delivered[0])
        assert (len(records), end) == (1, INVALID_KIND)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("cuptiActivityEnable", lambda client: client("cuptiActivityEnable", 10)),
        ("cuptiActivityDisable", lambda client: client("cuptiActivityDisable", 10)),
        ("cuptiActivityFlushAll", lambda client: client("cuptiActivityFlushAll", 0)),
        ("cuptiSubscribe", lambda client: client("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), None, None)),
        ("cuptiGetTimestamp", lambda client: client("cuptiGetTimestamp", ctypes.byref(ctypes.c_uint64()))),
        ("cuptiGetVersion", lambda client: client("cuptiGetVersion", ctypes.byref(ctypes.c_uint32()))),
        ("cuInit", lambda client: client("cuInit", 0)),
        ("cuDriverGetVersion", lambda client: client("cuDriverGetVersion", ctypes.byref(ctypes.c_int()))),
    ],
)
def test_error_from_a_chosen_call(function: str, call: Callable[[CuptiClient], int]) -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        client.check("cuptiActivityRegisterCallbacks", client._request, client._complete)
        gpu.inject("error", target=function, value=35, after=1, count=2)
        results = []
        for _ in range(4):
            results.append(call(client))
            if function == "cuptiSubscribe" and results[-1] == MULTIPLE_SUBSCRIBERS:
                results[-1] = SUCCESS
        assert results == [SUCCESS, 35, 35, SUCCESS]


def test_failed_call_does_nothing() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        gpu.inject("error", target="cuptiActivityEnable")
        client.check("cuptiActivityRegisterCallbacks", client._request, client._complete)
        assert client("cuptiActivityEnable", CONCURRENT_KERNEL) == 999
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        assert client.delivered == []
        logged = [(call.function, call.argument, call.result) for call in gpu.calls()]
        assert logged[1] == ("cuptiActivityEnable", CONCURRENT_KERNEL, 999)


def test_second_subscriber() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("second_subscriber", target="Nsight Systems")
        client = CuptiClient()
        for _ in range(3):
            assert client("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), None, None) == MULTIPLE_SUBSCRIBERS
        gpu.clear_faults()
        client.check("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), None, None)


def test_stub_driver() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("stub_driver")
        client = CuptiClient()
        assert client("cuInit", 0) == 34
        assert client("cuDriverGetVersion", ctypes.byref(ctypes.c_int())) == 34


def test_faults_end_with_their_simulator() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("stub_driver")
    with SimulatedGpu():
        assert CuptiClient()("cuInit", 0) == SUCCESS


def test_every_fault_has_a_test() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    with SimulatedGpu() as gpu:
        assert [row.name for row in gpu.faults() if not any(row.name in test for test in tests)] == []


# -- Misuse -----------------------------------------------------------------------------------------------------------


def declined(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.decline = True
    client.open(RUNTIME)
    gpu.launch("k", launch="runtime")


def in_use(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.set_attribute(9, ctypes.c_uint8(1))
    client.reuse = True
    client.open(RUNTIME)
    gpu.launch("k")
    thread = threading.Thread(target=gpu.launch, args=("k",))
    thread.start()
    thread.join()


def misaligned(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.offset = 4
    client.open(RUNTIME)
    gpu.launch("k")


def not_zeroed(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.dirty = True
    client.open(RUNTIME, own_zeroes=True)
    gpu.launch("k")


def too_small(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.buffer_bytes = 32
    client.open(RUNTIME)
    gpu.launch("k")


def call_in_callback(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.in_request = client.timestamp
    client.open(RUNTIME)
    gpu.launch("k")


def driver_call_in_callback(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.in_request = lambda: client("cuCtxGetCurrent", ctypes.byref(ctypes.c_void_p()))
    client.open(RUNTIME)
    gpu.launch("k")


def flush_in_callback(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.in_request = lambda: client("cuptiActivityFlushAll", 0)
    client.open(RUNTIME)
    gpu.launch("k")


def callbacks_after_enable(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.open(RUNTIME)
    client.check("cuptiActivityRegisterCallbacks", client._request, client._complete)


def no_callbacks(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.check("cuptiActivityEnable", RUNTIME)


def disable_while_running(gpu: SimulatedGpu, client: CuptiClient) -> None:
    client.open(CONCURRENT_KERNEL)
    gpu.launch("k")
    client.check("cuptiActivityDisable", CONCURRENT_KERNEL)


def finalize_after_graphs(gpu: SimulatedGpu, client: CuptiClient) -> None:
    gpu.launch_graph(["a"])
    client.check("cuptiFinalize")


def older_driver(gpu: SimulatedGpu, client: CuptiClient) -> None:
    assert client("cuptiGetVersion", ctypes.byref(ctypes.c_uint32())) == 999


@pytest.mark.parametrize(
    ("program", "misuse", "options"),
    [
        (declined, "buffer_declined", {"cuda": "12.8"}),
        (in_use, "buffer_in_use", {"cuda": "12.4"}),
        (misaligned, "buffer_misaligned", {}),
        (not_zeroed, "buffer_not_zeroed", {}),
        (too_small, "buffer_too_small", {}),
        (call_in_callback, "call_in_callback", {}),
        (driver_call_in_callback, "call_in_callback", {}),
        (flush_in_callback, "flush_in_callback", {}),
        (callbacks_after_enable, "callbacks_after_enable", {}),
        (no_callbacks, "no_buffer_callbacks", {}),
        (disable_while_running, "disable_deadlock", {"cuda": "13.0", "api_version": 130000}),
        (finalize_after_graphs, "finalize", {"cuda": "12.5"}),
        (older_driver, "older_driver", {"cuda": "13.2", "driver": "13.1"}),
    ],
)
def test_misuse_is_counted(
    program: Callable[[SimulatedGpu, CuptiClient], None], misuse: str, options: dict[str, str]
) -> None:
    with SimulatedGpu(**options) as gpu:  # type: ignore[arg-type]
        program(gpu, CuptiClient())
        counted = gpu.misuse()
        assert counted.keys() == {misuse}
        assert counted[misuse] >= 1


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (declined, {"cuda": "12.9"}),
        (disable_while_running, {"cuda": "13.0"}),
        (finalize_after_graphs, {"cuda": "12.6"}),
        (lambda gpu, client: client.timestamp(), {"cuda": "13.2"}),
        (lambda gpu, client: client.timestamp(), {"cuda": "13.3", "driver": "13.1"}),
    ],
)
def test_the_same_is_no_misuse_where_it_is_fixed(
    program: Callable[[SimulatedGpu, CuptiClient], None], options: dict[str, str]
) -> None:
    with SimulatedGpu(**options) as gpu:  # type: ignore[arg-type]
        program(gpu, CuptiClient())
        assert gpu.misuse() == {}


def test_registering_the_timestamp_callback_again_spoils_first_kernels() -> None:
    own = ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: 5 * 10**18)
    with SimulatedGpu(start_ns=10**15) as gpu:
        client = CuptiClient()
        client.check("cuptiActivityRegisterCallbacks", client._request, client._complete)
        wrong = []
        for _ in range(3):
            client.check("cuptiActivityRegisterTimestampCallback", own)
            client.check("cuptiActivityEnable", CONCURRENT_KERNEL)
            client.delivered.clear()
            for _ in range(5):
                gpu.launch("k")
            gpu.synchronize()
            client.flush()
            client.check("cuptiActivityDisable", CONCURRENT_KERNEL)
            wrong.append([record.start < 4 * 10**18 for record in client.records()])
        assert wrong == [[False] * 5, [True] * 2 + [False] * 3, [True] * 3 + [False] * 2]
        assert gpu.misuse() == {"timestamp_callback_again": 2}


def test_call_in_a_forked_child_is_counted_there() -> None:
    program = (
        "import os, sys\n"
        "from collector.testing import SimulatedGpu\n"
        "from cupti_client import CuptiClient\n"
        "with SimulatedGpu() as gpu:\n"
        "    client = CuptiClient()\n"
        "    client.timestamp()\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        client.timestamp()\n"
        "        os._exit(gpu.misuse() == {'call_in_forked_child': 1})\n"
        "    _, status = os.waitpid(child, 0)\n"
        "    sys.exit(0 if os.waitstatus_to_exitcode(status) == 1 and gpu.misuse() == {} else 1)\n"
    )
    folders = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": folders}, timeout=60)
    assert done.returncode == 0


def test_fatal_misuse_can_end_the_process() -> None:
    program = (
        "import ctypes\n"
        "from collector.testing import SimulatedGpu\n"
        "from cupti_client import CuptiClient\n"
        "with SimulatedGpu(cuda='13.2', driver='12.4', abort_on_fatal=True):\n"
        "    CuptiClient().timestamp()\n"
    )
    folders = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": folders},
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -6
    assert "older_driver" in done.stderr


# -- The Python surface -----------------------------------------------------------------------------------------------


def test_one_simulator_at_a_time() -> None:
    with SimulatedGpu(), pytest.raises(CollectorError, match="open already"), SimulatedGpu():
        pass


@pytest.mark.parametrize("before", [None, "/somewhere/else.so"])
def test_environment_is_restored(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("COLLECTOR_LIBCUPTI", "COLLECTOR_LIBCUDA"):
        if before is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, before)
    with SimulatedGpu():
        assert os.environ["COLLECTOR_LIBCUPTI"].endswith("libcollector_simulator.so")
        assert os.environ["COLLECTOR_LIBCUDA"] == os.environ["COLLECTOR_LIBCUPTI"]
    assert os.environ.get("COLLECTOR_LIBCUPTI") == before
    assert os.environ.get("COLLECTOR_LIBCUDA") == before


def test_closed_simulator_says_so() -> None:
    gpu = SimulatedGpu()
    with pytest.raises(CollectorError, match="not open"):
        gpu.launch("k")
    with gpu:
        pass
    with pytest.raises(CollectorError, match="not open"):
        gpu.synchronize()


@pytest.mark.parametrize("cuda", ["11.8", "12.7", "14.0"])
def test_unknown_version_is_refused(cuda: str) -> None:
    with pytest.raises(CollectorError, match="knows no CUDA"), SimulatedGpu(cuda=cuda):
        pass
    with SimulatedGpu():
        pass


@pytest.mark.parametrize("cuda", ["twelve", "12", "12.x"])
def test_malformed_version_is_refused(cuda: str) -> None:
    with pytest.raises(CollectorError, match="not a CUDA version"):
        SimulatedGpu(cuda=cuda)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda gpu: gpu.launch("k", device=1), "no device 1"),
        (lambda gpu: gpu.launch("k", context=9), "context 9 is not one of device 0"),
        (lambda gpu: gpu.launch("k", launch="magic"), "no way to launch"),
        (lambda gpu: gpu.memcpy("HtoX", 1), "HtoX"),
        (lambda gpu: gpu.memcpy("HtoD", 1, src="moon"), "memory kind"),
        (lambda gpu: gpu.wait_event(1), "no event 1"),
        (lambda gpu: gpu.synchronize_event(1), "no event 1"),
        (lambda gpu: gpu.api_call("cudaMakeCoffee"), "knows no API call"),
        (lambda gpu: gpu.api_call(), "knows no API call"),
        (lambda gpu: gpu.inject("gremlin"), "knows no fault"),
        (lambda gpu: gpu.inject("error", target="cuptiDance"), "exports no function"),
        (lambda gpu: gpu.reload_module("a", "b"), "cannot be replaced"),
        (lambda gpu: gpu.replay(kernels=[{"start_ns": 1}]), "lacks start_ns or end_ns"),
        (lambda gpu: gpu.replay(memsets=[{"start_ns": 1, "end_ns": 2, "name": "k"}]), "unknown keys: name"),
    ],
)
def test_mistakes_are_named(operation: Callable[[SimulatedGpu], object], message: str) -> None:
    with SimulatedGpu() as gpu, pytest.raises(CollectorError, match=message):
        operation(gpu)


def test_library_can_be_opened_without_python() -> None:
    """As a program's environment may name it: it opens itself, by variables of its own."""
    program = (
        "import ctypes, os\n"
        "library = ctypes.CDLL(os.environ['LIBRARY'])\n"
        "count = ctypes.c_int()\n"
        "assert library.cuDeviceGetCount(ctypes.byref(count)) == 0\n"
        "print(count.value, library.collector_simulator_version())\n"
    )
    from collector.testing.simulator_library import library_path

    variables = {
        "LIBRARY": str(library_path()),
        "COLLECTOR_SIMULATED_CUDA": "12040",
        "COLLECTOR_SIMULATED_DEVICES": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.split() == ["3", "22"]
