"""The worked example by which every definition is checked, and recorded traces with their figures."""

from __future__ import annotations

import json

import pytest

import collector


@pytest.fixture
def example(example_builder):
    """The recording of the worked example."""
    return example_builder.recording()


@pytest.fixture
def example_builder(build):
    """A step of 1,000 ns on device 0, small enough to be counted by hand.

    Calls, start to end: launches 1 at 0-20, 2 at 30-50, 5 at 90-110, 4 at 300-320, 7 at 750-770; an asynchronous copy 3
    at 60-80; a synchronisation with stream 7 at 330-700; a launch of a graph of two kernels, 8, at 775-795.
    """
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 1000
    for correlation, start, end in ((1, 0, 20), (2, 30, 50), (5, 90, 110), (4, 300, 320), (7, 750, 770)):
        build.call("cudaLaunchKernel_v7000", start, end - start, correlation_id=correlation)
    build.call("cudaMemcpyAsync_v3020", 60, 20, correlation_id=3)
    build.call("cudaStreamSynchronize_v3020", 330, 370, correlation_id=6)
    build.call("cudaGraphLaunch_v10000", 775, 20, correlation_id=8)
    for name, stream, start, end, correlation in (
        ("A", 7, 100, 200, 1),
        ("B", 7, 200, 250, 2),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 240, 400, 5),
        ("D", 7, 420, 690, 4),
        ("F", 7, 800, 850, 7),
        ("G1", 7, 860, 900, 8),
        ("G2", 7, 890, 930, 8),
    ):
        build.kernel(name, start, end - start, stream_id=stream, correlation_id=correlation)
    build.memcpy(120, 100, stream_id=8, correlation_id=3, num_bytes=4000)
    return build


@pytest.fixture
def some_work():
    """Strategy for functions that fill a builder with up to 30 activities of all kinds on two devices."""
    st = pytest.importorskip("hypothesis").strategies
    activity = st.tuples(
        st.sampled_from(["compute", "nccl", "copy", "memset"]),
        st.integers(0, 900_000),
        st.integers(0, 200_000),
        st.integers(0, 1),
        st.integers(7, 9),
    )

    def filling(activities):
        def fill(made):
            for kind, start, duration, device, stream in activities:
                place = {"device_id": device, "stream_id": stream}
                if kind == "copy":
                    made.memcpy(start, duration, **place)
                elif kind == "memset":
                    made.memset(start, duration, **place)
                else:
                    made.kernel(kind, start, duration, **place)
            return made

        return fill

    return st.lists(activity, max_size=30).map(filling)


@pytest.fixture(scope="session")
def gpu_traces(shared):
    """The folder of recorded traces."""
    return shared / "data" / "gpu_traces"


@pytest.fixture(scope="session")
def counts(gpu_traces):
    """What was counted in each of them by a script of its own: name -> figures."""
    return json.loads((gpu_traces / "counts.json").read_text())


@pytest.fixture(scope="session")
def load_trace(gpu_traces):
    """Loads a recorded trace by its name."""

    def load(name):
        return collector.load(gpu_traces / name)

    return load
