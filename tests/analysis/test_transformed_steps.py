"""Properties of every question: a step that is moved, stretched, renamed or divided has the figures that follow."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from captures import CaptureBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

from collector.analysis import between
from collector.analysis.questions import QUESTIONS
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

pytestmark = pytest.mark.slow

ASKED = [
    (name, by) for name, question in QUESTIONS.items() if not question.of_ranks for by in question.questions
]  # fmt: skip
NAMES = ("gemm", "void add<float>(float*, int)", "ncclDevKernel_AllReduce", "_Z3addIfEvPT_i")
LENGTH_NS = 1_000_000

rows = st.lists(
    st.tuples(
        st.sampled_from(
            [*("kernel", "memcpy", "memset", "annotation", "wait", "overhead", "memory", "graph", "whole graph")]
        ),
        st.sampled_from(NAMES),
        st.integers(2_000, 900_000),
        st.integers(0, 90_000),
        st.integers(0, 1),
        st.integers(7, 8),
    ),
    max_size=20,
)
"""Kind, name, start, duration, device, stream."""


def step_of(drawn, *, scale=1, suffix=""):
    """A step of these rows with the launches of the GPU work; times are multiplied, and kernels renamed."""
    build = CaptureBuilder()
    build.environment["source"] = "native"
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + scale * LENGTH_NS
    begin_ns = build.clock["cupti_start_ns"]
    for number, (kind, name, start, duration, device, stream) in enumerate(drawn, start=1):
        at, lasted = scale * start, scale * duration
        times = {"start_ns": begin_ns + at, "end_ns": begin_ns + at + lasted}
        place = {"device_id": device, "context_id": device + 1, "stream_id": stream, "correlation_id": number}
        if kind in ("kernel", "memcpy", "memset", "whole graph"):
            build.call("cudaLaunchKernel_v7000", at - scale * 1_000, scale * 500, correlation_id=number, domain=2)
            add = getattr(build, kind.replace(" ", "_"))
            add(*([name + suffix] if kind == "kernel" else []), at, lasted, **place)
        elif kind == "annotation":
            build.annotation("layer", at, lasted, number, number % 5)
        elif kind == "wait":
            build.call("cudaStreamSynchronize_v3020", at, lasted, correlation_id=number, domain=2)
            build.raw("synchronizations", sync_type=3, stream_id=stream, context_id=1, correlation_id=number, **times)
        elif kind == "overhead":
            build.raw("overheads", overhead_kind=1 << 16, **times)
        elif kind == "memory":
            operation = {"operation": 1 + number % 2, "address": 4096, "num_bytes": 256, "memory_kind": 3}
            build.raw("memory_operations", start_ns=begin_ns + at, **operation, **place)
        else:
            build.raw("graph_launches", graph_id=3, num_nodes=2, **times, **place)
    return build.recording()


def moved(recording, by_ns):
    """The same step at another time."""
    capture = recording.to_capture()
    tables = {
        table: {name: values + by_ns if name in ("start_ns", "end_ns") else values for name, values in columns.items()}
        for table, columns in capture["tables"].items()
    }
    clock = {name: time + by_ns * name.endswith(("start_ns", "stop_ns")) for name, time in capture["clock"].items()}
    return Recording.from_capture({**capture, "tables": tables, "clock": clock})


def told(name, by, step):
    return QUESTIONS[name].answer(step, by).to_json()


@given(rows, st.integers(-(10**18), 10**18))
@settings(max_examples=examples(25))
def test_a_step_at_another_time_has_the_same_figures(drawn, by_ns):
    step = step_of(drawn)
    later = moved(step, by_ns)
    for name, by in ASKED:
        first, second = told(name, by, step), told(name, by, later)
        for window in second["windows"]:
            window["start_ns"] -= by_ns
            window["end_ns"] -= by_ns
        assert second == first, (name, by)


SCALED = ("devices", "concurrency", "streams", "overlap", "kernels", "ops", "copies", "launches", "queue", "calls")
SCALED += ("launch_delays", "annotation_times", "memory", "code_loading", "graphs", "steps")
"""Questions without a time of their own: gaps between kernels, as `idle` tells them apart, have a length in ns."""


@given(rows, st.integers(2, 50))
@settings(max_examples=examples(25))
def test_a_step_that_takes_longer_has_longer_times_and_the_same_counts_and_shares(drawn, scale):
    step, longer = step_of(drawn), step_of(drawn, scale=scale)
    of_units = {"ns": scale, "bytes/s": 1 / scale}
    for name, by in ASKED:
        if name not in SCALED:
            continue
        first, second = told(name, by, step), told(name, by, longer)
        factors = [of_units.get(column["unit"], 1) for column in first["columns"]]
        expected = [[scaled(*each) for each in zip(row, factors, strict=True)] for row in first["rows"]]
        assert in_order(second["rows"]) == in_order(expected), (name, by)
        totals = {
            figure: scaled(total, scale if figure.endswith("_ns") else 1) for figure, total in first["totals"].items()
        }
        assert (second["totals"], second["losses"]) == (totals, first["losses"]), (name, by)


def scaled(value, factor):
    return value if value is None or isinstance(value, str) else value * factor


def in_order(rows):
    """Rows in a defined order; fractions to nine digits."""
    plain = [[float(f"{value:.9g}") if isinstance(value, float) else value for value in row] for row in rows]
    return sorted(plain, key=str)


@given(rows)
@settings(max_examples=examples(25))
def test_the_names_of_kernels_decide_no_other_figure(drawn):
    drawn = [each for each in drawn if each[1] in ("gemm", "ncclDevKernel_AllReduce")]
    step, renamed = step_of(drawn), step_of(drawn, suffix="_9")
    for name, by in ASKED:
        first, second = told(name, by, step), told(name, by, renamed)
        for row in second["rows"]:
            row[:] = [re.sub("_9$", "", value) if isinstance(value, str) else value for value in row]
        assert in_order(second["rows"]) == in_order(first["rows"]), (name, by)
        assert (second["totals"], second["losses"]) == (first["totals"], first["losses"]), (name, by)


ADDED = {
    "devices": ("window_ns", "busy_ns", "idle_ns", "activities"),
    "concurrency": ("duration_ns",),
    "idle": ("idle_ns",),
    "kernels": ("count", "total_ns"),
    "copies": ("count", "num_bytes", "total_ns"),
    "ops": ("self_activities", "self_ns"),
    "graphs": ("launches",),
}
"""Question -> totals that are sums of those of the parts of a step, if all GPUs worked in each part."""


@given(rows, rows)
@settings(max_examples=examples(25))
def test_the_parts_of_a_step_have_its_figures_together(first, second):
    # Both devices work in both halves, and nothing runs from one half into the other.
    halves = [
        [("kernel", "gemm", place, 500, device, 7) for device in (0, 1) for place in (2_000, 440_000)]
        + [(*each[:2], 2_000 + each[2] // 3, *each[3:]) for each in half]
        for half in (first, second)
    ]
    half_ns = LENGTH_NS // 2
    late = [(*each[:2], each[2] + half_ns, *each[3:]) for each in halves[1]]
    step = step_of([*halves[0], *late])
    parts, all_of_it = [between(step, 0, half_ns), between(step, half_ns, LENGTH_NS)], between(step, 0, LENGTH_NS)
    assert sum(len(part.kernels) for part in parts) == len(step.kernels)
    for name, figures in ADDED.items():
        whole, apart, again = (QUESTIONS[name].ask(asked).totals for asked in (step, parts, all_of_it))
        assert {figure: apart[figure] for figure in figures} == {figure: whole[figure] for figure in figures}, name
        assert again == whole, name


def test_moving_a_step_moves_every_time():
    step = step_of([("kernel", NAMES[0], 5_000, 10, 0, 7), ("wait", "", 6_000, 10, 0, 7)])
    later = moved(step, 7)
    for table in SCHEMA:
        if "start_ns" in SCHEMA[table] and len(getattr(step, table)):
            assert np.array_equal(getattr(later, table).start_ns, getattr(step, table).start_ns + 7), table
    assert later.clock.window_ns == step.clock.window_ns
    assert later.clock.offset_ns == step.clock.offset_ns == 0
