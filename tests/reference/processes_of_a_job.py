"""Recordings of several processes whose ids collide, for property tests; and the figures that no merge may change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from support.captures import CaptureBuilder

from collector import analysis

if TYPE_CHECKING:
    from collector.recording.recording import Recording

_LAUNCHES = ("cudaLaunchKernel_v7000", "cudaGraphLaunch_v10000", "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020")


@st.composite
def process_recordings(draw: Any) -> Recording:
    """What one process launched: each counts its launches, streams and threads like all others."""
    build = CaptureBuilder()
    at = draw(st.integers(1, 5000))
    free_at = {}
    for correlation in range(1, draw(st.integers(1, 6)) + 1):
        name = draw(st.sampled_from(_LAUNCHES))
        thread, stream = draw(st.sampled_from([11, 12])), draw(st.sampled_from([7, 8]))
        begun, lasts = at, draw(st.integers(2, 50))
        build.call(name, begun, lasts, correlation_id=correlation, thread_id=thread)
        if draw(st.booleans()):
            op = draw(st.sampled_from(["layer1", "layer2"]))
            build.annotation(op, begun - 1, lasts + 2, correlation, correlation)
            build.rows["annotations"][-1]["thread_id"] = thread
        for node in range(2 if "Graph" in name else 1):
            start = max(free_at.get(stream, 0), begun + draw(st.integers(0, 300)))
            place = {"correlation_id": correlation, "stream_id": stream}
            lasted = draw(st.integers(1, 200))
            if "Memcpy" in name:
                build.memcpy(start, lasted, **place)
            elif "Memset" in name:
                build.memset(start, lasted, **place)
            else:
                graph = {"graph_id": 3, "graph_node_id": node + 1} if "Graph" in name else {}
                build.kernel(draw(st.sampled_from(["matmul", "relu"])), start, lasted, **place, **graph)
            free_at[stream] = start + lasted
        at += lasts + draw(st.integers(3, 100))
        if draw(st.booleans()):
            lasts = draw(st.integers(2, 300))
            build.call("cudaDeviceSynchronize_v3020", at, lasts, correlation_id=100 + correlation, thread_id=thread)
            at += lasts + 3
    return build.recording()


def delays(recording: Recording) -> Counter[tuple[Any, ...]]:
    """Each activity with its op, the function that launched it, its delay and its time in the queue."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in analysis.launch_delays(recording):
        table = getattr(recording, row["table"])
        names = table.recorded_names() if row["table"] == "kernels" else [row["table"]] * len(table)
        op = recording.annotations_of(table)[row["row"]]
        call = recording.api_calls.recorded_names()[row["api_row"]].partition("_v")[0]
        found[names[row["row"]], op, call, row["api_ns"], row["delay_ns"], row["queue_ns"]] += 1
    return found


def path_lengths(recording: Recording) -> Counter[tuple[Any, ...]]:
    """The parts of the critical path by kind and name."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in analysis.critical_path(recording, by="name"):
        found[row["kind"], row["name"]] += row["total_ns"]
    return found


def op_times(recording: Recording) -> Counter[tuple[Any, ...]]:
    """Activities and GPU time of each op."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in analysis.ops(recording):
        for figure in ("runs", "host_ns", "activities", "self_ns", "total_ns"):
            found[row["path"], figure] += row[figure]
    return found


def idle_causes(recording: Recording) -> Counter[tuple[Any, ...]]:
    """Idle time by cause, from the first to the last activity of each device."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in analysis.idle(recording, window="span"):
        found.update({(name,): value for name, value in row.items() if name.endswith("_ns")})
    return found


FIGURES = (delays, path_lengths, op_times, idle_causes)
"""What is the sum of all processes, and never joins rows of two of them."""
