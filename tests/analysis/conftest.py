"""Any work that a test may ask about, and recorded traces with their figures."""

from __future__ import annotations

import json

import pytest

import collector


@pytest.fixture
def some_work():
    """Strategy for functions that fill a builder with up to 30 activities of all kinds on two devices."""
    st = pytest.importorskip("hypothesis").strategies
    activity = st.tuples(
        st.sampled_from(["compute", "nccl", "copy", "memset", "graph"]),
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
                elif kind == "graph":
                    made.whole_graph(start, duration, **place)
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
