"""Sessions beside other clients of CUPTI that share it: XLA (xla#46077) and PyTorch's monitor (pytorch#186439) do.

The functions of a subscriber (V2) and those of the process (V1) exclude each other: pytorch#192094.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import pytest
from cupti_client import CALLBACK, CuptiClient, SubscriberParams

import collector
from collector.errors import SubscriberConflictError
from collector.testing import SimulatedGpu

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.simulator

WHOLE_GRAPHS = 20
"""CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE."""


class OtherClient(CuptiClient):
    """A profiler that shares CUPTI, and has used functions of a subscriber."""

    def __init__(self, *, allows_others: bool = True) -> None:
        super().__init__()
        self.handle = ctypes.c_void_p()
        self._callback = CALLBACK()
        params = SubscriberParams(40, b"XLA", None, 0, int(allows_others))
        self.check("cuptiSubscribe_v2", ctypes.byref(self.handle), self._callback, None, ctypes.byref(params))
        self.set(5, ctypes.c_uint8(1))

    def set(self, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self.check("cuptiActivitySetAttribute_v2", self.handle, attribute, ctypes.byref(size), ctypes.byref(value))

    def leave(self) -> None:
        self.check("cuptiUnsubscribe", self.handle)


@pytest.fixture(params=["13.3", "13.5"])
def gpu(request: pytest.FixtureRequest) -> Iterator[SimulatedGpu]:
    with SimulatedGpu(cuda=request.param, devices=2) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def work(gpu: SimulatedGpu, count: int = 20) -> None:
    with collector.annotate("outer"), collector.annotate("inner"):
        for _ in range(count):
            gpu.launch("_Z5sgemmPfi", stream=7, duration_ns=1_000)
    gpu.memcpy("HtoD", 1 << 20, stream=7)


def recorded(step: Any) -> dict[str, Any]:
    assert step.ledger.complete
    kernels = step.recording.kernels
    return {
        "kernels": len(kernels),
        "copies": step.recording.memcpys.num_bytes.tolist(),
        "paths": set(kernels.annotations()),
        "threads": set(step.recording.api_calls.thread_id.tolist()),
    }


EXPECTED = {"kernels": 20, "copies": [1 << 20], "paths": {"outer/inner"}}


def expected() -> dict[str, Any]:
    return EXPECTED | {"threads": {threading.get_native_id()}}


@pytest.mark.parametrize("stays", [True, False])
def test_a_session_joins_a_client_that_shares_cupti(gpu: SimulatedGpu, *, stays: bool) -> None:
    """Also when the client has left: its use of V2 excludes V1 for the rest of the process."""
    other = OtherClient()
    if not stays:
        other.leave()
    for _ in range(3):
        with collector.trace(strict=True) as step:
            work(gpu)
        assert recorded(step) == expected()
        assert step.recording.environment["first_subscriber"] == ("XLA" if stays else "a client without a name")
        assert step.recording.environment["shared_subscription"] is False


def test_a_session_that_nobody_disturbs_uses_no_function_of_a_subscriber(gpu: SimulatedGpu) -> None:
    """Every version and every driver has those of the process."""
    with collector.trace(strict=True) as step:
        work(gpu)
    assert recorded(step) == expected()
    assert "first_subscriber" not in step.recording.environment
    assert [name for name in gpu.statistics().calls if name.startswith("cupti") and name.endswith("_v2")] == []


def test_our_subscription_stays_and_calls_nothing_back(gpu: SimulatedGpu) -> None:
    """Threads pop annotations whenever they end them, so the subscription must not end before them."""
    OtherClient()
    ends = threading.Event()
    began = threading.Event()

    def annotated() -> None:
        with collector.annotate("long"):
            began.set()
            ends.wait(60)

    with collector.trace(strict=True):
        thread = threading.Thread(target=annotated)
        thread.start()
        began.wait(60)
        work(gpu)
    before = gpu.statistics().calls.get("cuptiUnsubscribe", 0)
    ends.set()
    thread.join()
    gpu.launch_graph([("node", 1_000)], graph_id=3)
    with collector.trace(strict=True) as step:
        work(gpu)
    assert recorded(step) == expected()
    assert gpu.statistics().calls.get("cuptiUnsubscribe", 0) == before == 0


def test_unfinished_work_of_others_is_not_cut(gpu: SimulatedGpu) -> None:
    """A forced flush would end the records of other subscribers, too: there is one flush for all."""
    OtherClient()
    with collector.trace(strict=True) as step:
        work(gpu)
    assert recorded(step) == expected()
    flags = [call.argument for call in gpu.calls() if call.function == "cuptiActivityFlushAll"]
    assert flags
    assert set(flags) == {0}


def test_work_that_never_ends_is_still_given_up(gpu: SimulatedGpu) -> None:
    OtherClient()
    with collector.trace(strict=True, synchronize=False) as step:
        work(gpu)
        gpu.launch("endless", stream=9, duration_ns=10**15)
    assert len(step.recording.kernels) == 20
    assert not step.ledger.complete
    assert 1 in {call.argument for call in gpu.calls() if call.function == "cuptiActivityFlushAll"}


def test_graphs_are_recorded_as_another_subscriber_has_chosen_for_all(gpu: SimulatedGpu) -> None:
    other = OtherClient()
    other.set(WHOLE_GRAPHS, ctypes.c_uint8(1))
    with collector.trace(strict=True) as step:
        with gpu.capture() as graph:
            for name in ("node0", "node1"):
                gpu.launch(name, stream=7, duration_ns=1_000)
        graph.instantiate().launch()
        work(gpu)
    assert recorded(step) == expected()
    (whole,) = step.recording.graph_launches.duration_ns.tolist()
    assert whole >= 2_000


def test_a_stream_joins_too(gpu: SimulatedGpu, tmp_path: Path) -> None:
    OtherClient()
    with collector.trace(strict=True, journal=tmp_path / "journal", stream=True):
        work(gpu)
    step = collector.load(tmp_path / "journal")
    assert recorded(step) == expected()
    assert step.recording.environment["first_subscriber"] == "XLA"


@pytest.mark.parametrize(
    ("cuda", "api_version", "driver"),
    [("13.2", None, None), ("13.3", 130300, None), ("13.5", None, "13.0"), ("13.5", None, "13.2")],
)
def test_what_cannot_be_shared_is_named(cuda: str, api_version: int | None, driver: str | None) -> None:
    """13.2 lacks half of the functions, 13.3.35 can crash, and older drivers allow one subscriber."""
    with SimulatedGpu(cuda=cuda, api_version=api_version, driver=driver):
        params = SubscriberParams(40, b"Nsight", None, 0, 0)
        client = CuptiClient()
        client.check("cuptiSubscribe_v2", ctypes.byref(ctypes.c_void_p()), CALLBACK(), None, ctypes.byref(params))
        with pytest.raises(SubscriberConflictError, match="Nsight"), collector.trace(strict=True):
            pass


def test_a_client_that_allows_no_other_is_named(gpu: SimulatedGpu) -> None:
    OtherClient(allows_others=False)
    with pytest.raises(SubscriberConflictError, match="XLA"), collector.trace(strict=True):
        pass


def test_a_client_that_has_used_v2_of_a_version_which_cannot_share_is_explained() -> None:
    with SimulatedGpu(cuda="13.3", api_version=130300) as gpu:
        params = SubscriberParams(40, b"XLA", None, 0, 0)
        client, handle = CuptiClient(), ctypes.c_void_p()
        client.check("cuptiSubscribe_v2", ctypes.byref(handle), CALLBACK(), None, ctypes.byref(params))
        size, value = ctypes.c_size_t(1), ctypes.c_uint8(1)
        client.check("cuptiActivitySetAttribute_v2", handle, 5, ctypes.byref(size), ctypes.byref(value))
        client.check("cuptiUnsubscribe", handle)
        with pytest.raises(SubscriberConflictError, match="V2"), collector.trace(strict=True):
            pass
        assert gpu.misuse() == {}
