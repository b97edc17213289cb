"""Every misuse of CUPTI the simulator notices."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import cupti_client
import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    MEMCPY,
    MEMCPY2,
    RUNTIME,
    CuptiClient,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


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


def graph_after_peer_copies(gpu: SimulatedGpu, client: CuptiClient, *, kind: int = MEMCPY2) -> None:
    kinds = (CONCURRENT_KERNEL, MEMCPY, kind)
    client.open(*kinds)
    gpu.memcpy("DtoD", 1 << 20)
    for each in kinds:
        client.check("cuptiActivityDisable", each)
    for each in kinds:
        client.check("cuptiActivityEnable", each)
    gpu.launch_graph(["a"])


def graph_after_memcpys(gpu: SimulatedGpu, client: CuptiClient) -> None:
    graph_after_peer_copies(gpu, client, kind=RUNTIME)


def without_driver(gpu: SimulatedGpu, client: CuptiClient) -> None:
    gpu.inject("stub_driver")
    assert client("cuptiGetVersion", ctypes.byref(ctypes.c_uint32())) == 15


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
        (graph_after_peer_copies, "peer_copies_before_graph", {"cuda": "12.9"}),
        (graph_after_peer_copies, "peer_copies_before_graph", {"cuda": "13.0"}),
        (without_driver, "no_driver", {"cuda": "12.4"}),
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
        (graph_after_memcpys, {"cuda": "13.0"}),
        (graph_after_peer_copies, {"cuda": "13.5"}),
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


def test_after_the_failure_of_a_graph_every_call_fails() -> None:
    with SimulatedGpu(cuda="13.0") as gpu:
        client = CuptiClient()
        graph_after_peer_copies(gpu, client)
        assert gpu.context_error == 719
        context = ctypes.c_void_p()
        assert client("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0) == 0
        assert client("cuCtxSetCurrent", context) == 0
        assert client("cuCtxSynchronize") == 719
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        assert not client.records(CONCURRENT_KERNEL)


def test_graphs_that_were_launched_without_cupti_run_after_peer_copies() -> None:
    with SimulatedGpu(cuda="13.0") as gpu:
        client = CuptiClient()
        gpu.launch_graph(["a"], graph_id=1)
        client.open(CONCURRENT_KERNEL, MEMCPY, MEMCPY2)
        gpu.memcpy("DtoD", 1 << 20)
        for kind in (CONCURRENT_KERNEL, MEMCPY, MEMCPY2):
            client.check("cuptiActivityDisable", kind)
        gpu.launch_graph(["a"], graph_id=2)
        client.check("cuptiActivityEnable", CONCURRENT_KERNEL)
        for graph_id in (1, 2):
            gpu.launch_graph(["a"], graph_id=graph_id)
        assert (gpu.context_error, gpu.misuse()) == (0, {})


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


def _run_apart(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that imports `cupti_client`, beside the same package as this process."""
    folders = [path for path in (os.environ.get("PYTHONPATH"), str(Path(cupti_client.__file__).parent)) if path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


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
    assert _run_apart(program).returncode == 0


def test_fatal_misuse_can_end_the_process() -> None:
    program = (
        "import ctypes\n"
        "from collector.testing import SimulatedGpu\n"
        "from cupti_client import CuptiClient\n"
        "with SimulatedGpu(cuda='13.2', driver='12.4', abort_on_fatal=True):\n"
        "    CuptiClient().timestamp()\n"
    )
    done = _run_apart(program)
    assert done.returncode == -6
    assert "older_driver" in done.stderr


def test_every_misuse_has_a_test() -> None:
    tested = {"timestamp_callback_again", "call_in_forked_child", "serialising_kernel_kind", "absent_function"}
    for mark in test_misuse_is_counted.pytestmark:  # type: ignore[attr-defined]
        tested |= {misuse for _, misuse, _ in mark.args[1]}
    with SimulatedGpu() as gpu:
        assert set(gpu.misuses()) == tested
