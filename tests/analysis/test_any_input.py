"""Properties of every question: any input is answered, and order and division of the rows do not matter."""

from __future__ import annotations

import json

import numpy as np
import pytest

from collector.analysis.questions import QUESTIONS
from collector.recording.schema import SCHEMA
from collector.recording.text_columns import text_column

pytestmark = pytest.mark.slow

OF_STEPS = {name: question for name, question in QUESTIONS.items() if not question.of_ranks}
STEP_MARK = "ProfilerStep#1"
NAMES = ["a", "a/b", 'quote"d', "line\nbreak", "nul\0", "\x1b[31m", "", "ncclDevKernel_AllReduce", STEP_MARK]
OF_ROWS = ("idle_gaps", "launch_delays")
"""Questions whose rows name rows of the recording, which the order of equal ones may change."""
OF_ALL_DEVICES = ("steps", "critical_path")
"""Questions with one answer for all devices of a recording, which is not the sum of theirs."""
OF_THE_HOST = ("synchronize_ns", "host_ns", "tracer_ns")
"""The host is one: with two programs in one recording it waits, and the tracer runs, where either does."""


@pytest.fixture
def hypothesis():
    return pytest.importorskip("hypothesis")


@pytest.fixture
def activities(hypothesis):
    """Kernels, copies, graphs, calls, annotations and memory operations of two devices, each a program of its own."""
    st = hypothesis.strategies
    return st.lists(
        st.tuples(
            st.sampled_from(["kernel", "memcpy", "memset", "whole_graph", "annotation", "overhead", "memory"]),
            st.sampled_from(NAMES),
            st.integers(0, 900_000),
            st.integers(1, 90_000),
            st.integers(0, 1),
            st.integers(0, 5),
        ),
        max_size=25,
    )


def fill(build, rows, devices=(0, 1)):
    """A recording of the rows of these devices; each has its own calls, threads, streams and correlation ids."""
    for number, (kind, name, start, duration, device, launch) in enumerate(rows, 1):
        if device not in devices:
            continue
        correlation = 100 * device + launch
        place = {"device_id": device, "context_id": device + 1, "stream_id": 7 + device, "correlation_id": correlation}
        if kind == "whole_graph":
            build.whole_graph(start, duration, **{**place, "graph_id": 3 + launch % 2, "name": name})
        elif kind in ("kernel", "memcpy", "memset"):
            place["graph_id"] = launch % 3  # a third of the launches are not graphs
            getattr(build, kind)(*([name] if kind == "kernel" else []), start, duration, **place)
        elif kind == "annotation":
            build.annotation(name, start, duration, number, correlation)
            build.rows["annotations"][-1]["thread_id"] = 11 + device
            build.call("cudaLaunchKernel", start, min(duration, 500), correlation_id=correlation, thread_id=11 + device)
        elif kind == "overhead":
            start_ns = build.clock["cupti_start_ns"] + start
            build.raw("overheads", overhead_kind=launch << 16, start_ns=start_ns, end_ns=start_ns + duration)
            jit = {"jit_operation_type": launch % 5, "jit_entry_type": launch % 4, "cache_bytes": 2**63 + launch}
            build.raw("jit_operations", start_ns=start_ns, end_ns=start_ns + duration, device_id=device, **jit)
        else:
            operation = {
                "operation": 1 + launch % 2,
                "address": 2**63 + launch,
                "num_bytes": duration,
                "memory_kind": 3,
            }
            build.raw("memory_operations", start_ns=build.clock["cupti_start_ns"] + start, **operation, **place)
    return build.recording()


def comparable(answer):
    return json.dumps([answer.to_json()[key] for key in ("rows", "totals", "losses")])


@pytest.mark.parametrize("name", [name for name in OF_STEPS if name not in OF_ROWS])
def test_the_order_of_rows_does_not_matter(hypothesis, activities, build, name):
    @hypothesis.given(activities, hypothesis.strategies.randoms(use_true_random=False))
    @hypothesis.settings(max_examples=25)
    def check(rows, random):
        made = type(build)()
        made.environment["source"] = "native"
        for text in NAMES:
            made.text(text)
        first = OF_STEPS[name].ask(fill(made, rows))
        for table in made.rows.values():
            random.shuffle(table)
        assert comparable(OF_STEPS[name].ask(made.recording())) == comparable(first)

    check()


@pytest.mark.parametrize("name", [name for name in OF_STEPS if name not in OF_ALL_DEVICES])
def test_ranks_apart_and_together_have_the_same_totals(hypothesis, activities, build, name):
    @hypothesis.given(activities)
    @hypothesis.settings(max_examples=25)
    def check(rows):
        rows = [row for row in rows if row[1] != STEP_MARK]  # which divides the work of all devices of a recording
        whole = OF_STEPS[name].ask(fill(type(build)(), rows))
        apart = OF_STEPS[name].ask([fill(type(build)(), rows, devices=(device,)) for device in (0, 1)])
        for figure, total in whole.totals.items():
            if figure not in OF_THE_HOST:
                assert apart.totals[figure] == total

    check()


@pytest.mark.parametrize("name", [name for name in OF_STEPS if name != "steps"])
def test_the_order_of_files_does_not_matter(hypothesis, activities, build, name):
    @hypothesis.given(activities, activities)
    @hypothesis.settings(max_examples=15)
    def check(first, second):
        recordings = [fill(type(build)(), rows) for rows in (first, second)]
        alone = [OF_STEPS[name].ask(each).to_json() for each in recordings]
        for order in ((0, 1), (1, 0)):
            answer = OF_STEPS[name].ask([recordings[place] for place in order])
            rows = [[number, *row] for number, place in enumerate(order) for row in alone[place]["rows"]]
            assert answer.to_json()["rows"] == rows
            for figure, total in answer.totals.items():
                assert total == sum(each["totals"][figure] for each in alone)

    check()


@pytest.mark.parametrize("name", OF_STEPS)
def test_whatever_the_columns_hold_there_is_an_answer(hypothesis, build, name):
    """Times of 0 and below, ends before starts, the largest numbers, rows twice."""
    st = hypothesis.strategies
    tables = ("kernels", "memcpys", "api_calls", "annotations", "external_correlations", "memory_operations", "devices")
    numbers = st.sampled_from([0, 1, 2, 77, 2**31 - 1, 2**63 - 1, 2**63, 2**64 - 1, -5])
    values = st.lists(numbers, min_size=8, max_size=8)

    @hypothesis.given(st.lists(st.tuples(st.sampled_from(tables), values, st.booleans()), max_size=10))
    @hypothesis.settings(max_examples=25)
    def check(rows):
        made = type(build)()
        for text in NAMES:
            made.text(text)
        made.kernel("a", 1000, 500, correlation_id=1)
        for table, drawn, is_in_the_step in rows:
            row = {}
            for place, (column, dtype) in enumerate(SCHEMA[table].items()):
                limits = np.iinfo(np.dtype(dtype))
                row[column] = min(max(drawn[place % len(drawn)], limits.min), limits.max)
            row["name_id"] = row.get("name_id", 0)
            row |= {column: value % len(NAMES) for column, value in row.items() if text_column(column)}
            row |= {"details_id": 0} if "details_id" in row else {}
            if is_in_the_step and "start_ns" in row:
                row["start_ns"] = made.clock["cupti_start_ns"] + row["start_ns"] % 1000
                row |= {"end_ns": row["start_ns"] + 10} if "end_ns" in row else {}
            made.raw(table, **row).raw(table, **row)
        answer = OF_STEPS[name].ask(made.recording())
        text = answer.text(rows=None)
        assert not set(text) & {"\0", "\x1b"}
        json.dumps(answer.to_json(), allow_nan=False)
        assert "\0" not in answer._repr_html_()

    check()
