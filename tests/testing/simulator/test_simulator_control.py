"""The simulator's clock and replay, CUPTI's subscription, and the driver."""

from __future__ import annotations

import ctypes

import pytest
from cupti_client import (
    CALLBACK,
    CONCURRENT_KERNEL,
    DRIVER,
    EVERY_KIND,
    INVALID_PARAMETER,
    MEMCPY,
    MEMSET,
    MULTIPLE_SUBSCRIBERS,
    RUNTIME,
    CuptiClient,
    SubscriberParams,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


def test_clock_moves_with_the_work_only() -> None:
    with SimulatedGpu(start_ns=5_000, api_call_ns=1_000) as gpu:
        client = CuptiClient()
        assert client.timestamp() == 5_000
        gpu.launch("k", duration_ns=100_000)
        assert client.timestamp() == 6_000
        gpu.advance(50)
        assert gpu.now_ns == client.timestamp() == 6_050
        gpu.synchronize()
        assert client.timestamp() > 100_000


def test_clock_can_follow_real_time() -> None:
    with SimulatedGpu(start_ns=5_000, real_time=True) as gpu:
        before = gpu.now_ns
        while gpu.now_ns == before:
            pass
        assert gpu.now_ns > before


def test_same_program_same_times() -> None:
    def times() -> list[tuple[int, int]]:
        with SimulatedGpu(start_ns=1_000) as gpu:
            client = CuptiClient().open(CONCURRENT_KERNEL, MEMCPY, RUNTIME)
            for stream in range(3):
                gpu.launch("k", stream=stream)
                gpu.memcpy("HtoD", 1 << 20, stream=stream)
            gpu.synchronize()
            client.flush()
            return sorted((record.start, record.end) for record in client.records())

    assert times() == times()


def test_replay_emits_exactly_what_it_is_given() -> None:
    with SimulatedGpu(devices=4, start_ns=500) as gpu:
        client = CuptiClient().open()
        replayed = gpu.replay(
            kernels=[
                {
                    "name": "k",
                    "start_ns": 2_000,
                    "end_ns": 2_001,
                    "device": 3,
                    "stream": 21,
                    "grid": (1, 2, 3),
                    "block": (4, 5, 6),
                    "correlation": 77,
                    "graph_id": 4,
                    "graph_node_id": 1 << 33,
                    "launch_start_ns": 1_000,
                    "launch_end_ns": 1_500,
                },
                {"name": "zero", "start_ns": 3_000, "end_ns": 3_000, "correlation": 77},
            ],
            memcpys=[
                {"kind": "HtoD", "num_bytes": 1 << 35, "start_ns": 10, "end_ns": 20, "src": "pinned", "launch": "none"}
            ],
            memsets=[{"num_bytes": 9, "value": 1, "start_ns": 30, "end_ns": 20, "launch": "driver"}],
        )
        client.flush()
        assert replayed == 4
        first, second = client.records(CONCURRENT_KERNEL)
        assert (first.start, first.end, first.device, first.context, first.stream) == (2_000, 2_001, 3, 4, 21)
        assert (first.grid, first.block, first.text) == ((1, 2, 3), (4, 5, 6), "k")
        assert (first.correlation, first.graph, first.graph_node) == (77, 4, 1 << 33)
        assert (second.start, second.end) == (3_000, 3_000)
        (copy,) = client.records(MEMCPY)
        assert (copy.start, copy.end, copy.bytes, copy.src_kind) == (10, 20, 1 << 35, 2)
        (fill,) = client.records(MEMSET)
        assert (fill.start, fill.end, fill.bytes, fill.value) == (30, 20, 9, 1)
        (launch,) = client.records(RUNTIME)
        assert (launch.correlation, launch.start, launch.end) == (77, 1_000, 1_500)
        assert [call.correlation for call in client.records(DRIVER)] == [fill.correlation, 77]
        assert gpu.now_ns == 3_000
        assert gpu.launch("later") > 77


def test_subscriber_sees_calls_enter_and_leave() -> None:
    seen: list[tuple[int, int, int]] = []

    @CALLBACK
    def callback(userdata: int, domain: int, cbid: int, data: int) -> None:
        seen.append((domain, cbid, ctypes.c_uint32.from_address(data).value))

    with SimulatedGpu() as gpu:
        client = CuptiClient()
        handle = ctypes.c_void_p()
        client.check("cuptiSubscribe", ctypes.byref(handle), callback, None)
        client.check("cuptiEnableDomain", 1, handle, 2)
        client.check("cuptiEnableCallback", 1, handle, 1, 307)
        gpu.launch("k")
        assert seen == [(2, 211, 0), (1, 307, 0), (1, 307, 1), (2, 211, 1)]
        client.check("cuptiEnableDomain", 0, handle, 2)
        client.check("cuptiUnsubscribe", handle)
        gpu.launch("k")
        assert len(seen) == 4
        assert client("cuptiUnsubscribe", handle) == INVALID_PARAMETER


def test_one_subscriber_at_a_time_and_v2_names_the_holder() -> None:
    with SimulatedGpu(cuda="13.0"):
        client = CuptiClient()
        handle = ctypes.c_void_p()
        none = CALLBACK()
        holder = ctypes.create_string_buffer(64)
        params = SubscriberParams(32, b"first", ctypes.cast(holder, ctypes.c_char_p), 64)
        client.check("cuptiSubscribe_v2", ctypes.byref(handle), none, None, ctypes.byref(params))
        assert client("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), none, None) == MULTIPLE_SUBSCRIBERS
        params.subscriber_name = b"second"
        again = client("cuptiSubscribe_v2", ctypes.byref(ctypes.c_void_p()), none, None, ctypes.byref(params))
        assert again == MULTIPLE_SUBSCRIBERS
        assert holder.value == b"CUPTI for first"  # as 13.0.85 says it
        params.struct_size = 40
        wrong = client("cuptiSubscribe_v2", ctypes.byref(handle), none, None, ctypes.byref(params))
        assert wrong == INVALID_PARAMETER


def test_driver_knows_its_devices_and_contexts() -> None:
    with SimulatedGpu(devices=2, cuda="12.4", driver="12.8", name="Test GPU") as gpu:
        client = CuptiClient()
        number = ctypes.c_int()
        client.check("cuInit", 0)
        client.check("cuDriverGetVersion", ctypes.byref(number))
        assert number.value == 12080
        client.check("cuDeviceGetCount", ctypes.byref(number))
        assert number.value == 2
        client.check("cuDeviceGet", ctypes.byref(number), 1)
        assert client("cuDeviceGet", ctypes.byref(number), 2) == 101
        name = ctypes.create_string_buffer(64)
        client.check("cuDeviceGetName", name, 64, 1)
        assert name.value == b"Test GPU"
        flags, active = ctypes.c_uint(), ctypes.c_int()
        client.check("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
        assert active.value == 0
        gpu.launch("k", device=1, duration_ns=10**6)
        client.check("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
        assert active.value == 1
        context, current = ctypes.c_void_p(), ctypes.c_void_p()
        client.check("cuCtxGetCurrent", ctypes.byref(current))
        assert current.value is None
        assert client("cuCtxSynchronize") == 201
        client.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 1)
        client.check("cuCtxPushCurrent_v2", context)
        client.check("cuCtxGetDevice", ctypes.byref(number))
        assert number.value == 1
        before = gpu.now_ns
        client.check("cuCtxSynchronize")
        assert gpu.now_ns > before + 900_000
        client.check("cuCtxPopCurrent_v2", ctypes.byref(current))
        assert current.value == context.value
        assert client("cuCtxPopCurrent_v2", ctypes.byref(current)) == 201
        client.check("cuDevicePrimaryCtxRelease_v2", 1)


def test_no_device() -> None:
    with SimulatedGpu(devices=0):
        assert CuptiClient()("cuInit", 0) == 100


def test_a_second_simulator_starts_afresh() -> None:
    with SimulatedGpu() as gpu:
        CuptiClient().open()
        gpu.launch("k")
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        assert gpu.launch("k") == 1
        client.flush()
        assert gpu.statistics().records == {}
        assert client.delivered == []


def test_everything_enabled_costs_no_misuse() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(*EVERY_KIND, own_zeroes=True)
        gpu.launch("k")
        gpu.synchronize()
        client.flush(forced=True)
        assert client.records()
        assert gpu.misuse() == {}
