"""What waits waited for, and ops and their backward passes, in an XSpace: XProf's stat ``flow``, and in its viewer."""

from __future__ import annotations

import pytest
from support.xspaces import xspace

from collector.stepstats.from_recording import run_metadata

NONE = 2**32 - 1
IN, OUT = 1, 2


@pytest.fixture
def metadata(build, start_ns):
    def wait(start, end, **values):
        times = {"start_ns": start_ns + start, "end_ns": start_ns + end}
        build.raw("synchronizations", **{**times, "stream_id": NONE, "event_id": NONE, "context_id": 1, **values})

    build.call("cudaEventRecord", 900, 50, correlation_id=2)
    build.kernel("first", 1000, 2000, correlation_id=1, stream_id=7)
    build.kernel("second", 3000, 3000, correlation_id=3, stream_id=7)
    build.raw("cuda_events", device_id=0, context_id=1, stream_id=7, correlation_id=2, event_id=5, event_sync_id=1005)
    wait(1500, 3500, sync_type=1, event_id=5, event_sync_id=1005, correlation_id=10)
    wait(1600, 1650, sync_type=2, stream_id=9, event_id=5, correlation_id=16)
    wait(1700, 1750, sync_type=2, stream_id=11, event_id=5, correlation_id=17)
    wait(3500, 6000, sync_type=3, stream_id=7, correlation_id=11)
    wait(9600, 9700, sync_type=4, correlation_id=13)  # its work was over
    return run_metadata(build.recording())


def flows_of(space):
    """(number of the flow, direction, event) of all ends, in order."""
    found = []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                for stat in event.stats:
                    if plane.stat_metadata[stat.metadata_id].name == "flow":
                        name = plane.event_metadata[event.metadata_id].name
                        found.append((stat.uint64_value >> 2, stat.uint64_value & 3, name))
    return sorted(found)


def test_a_wait_and_what_it_waited_for_are_one_flow(metadata):
    """The stat is XProf's `XFlow`: two bits of direction, then 56 bits of a number."""
    assert flows_of(xspace(metadata)) == [
        (1, IN, "Event Synchronize"),
        (1, OUT, "first"),
        (2, IN, "Stream Synchronize"),
        (2, OUT, "second"),
        (3, IN, "Stream Wait Event"),
        (3, IN, "Stream Wait Event"),
        (3, OUT, "cudaEventRecord"),
    ]


def test_a_step_without_waits_has_no_flows(build):
    build.launch(1, 100).kernel("k", 1000, correlation_id=1)
    assert flows_of(xspace(run_metadata(build.recording()))) == []


def test_ops_and_their_backward_passes_are_flows(build, start_ns):
    def op(name, start, number, thread=1):
        stated = {"thread_id": thread, "op_sequence": number, "external_id": start, "name_id": build.text(name)}
        build.raw("annotations", start_ns=start_ns + start, end_ns=start_ns + start + 50, **stated)

    op("aten::linear", 100, 4)
    op("aten::relu", 200, 5)
    op("aten::mul", 300, 0)
    op("autograd::engine::evaluate_function: ReluBackward0", 400, 5, thread=2)
    op("autograd::engine::evaluate_function: AddmmBackward0", 500, 4, thread=2)
    assert flows_of(xspace(run_metadata(build.recording()))) == [
        (1, IN, "autograd::engine::evaluate_function: AddmmBackward0"),
        (1, OUT, "aten::linear"),
        (2, IN, "autograd::engine::evaluate_function: ReluBackward0"),
        (2, OUT, "aten::relu"),
    ]
