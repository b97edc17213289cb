"""Trees, figures and lines are kept between questions, and the answers equal those of a new profiler."""

from __future__ import annotations

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

from collector.profiler.api import Profiler
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import ProfilerError
from collector.profiler.views.view_registry import VIEWS
from collector.protos import RunMetadata

SELECTED = ("micros", "output_bytes", "float_ops", "occurrence", "device", "op_types", "input_shapes")

options = st.builds(
    Options,
    max_depth=st.sampled_from([1, 2, 10]),
    min_micros=st.sampled_from([0, 8]),
    order_by=st.sampled_from(["name", "micros", ""]),
    account_type_regexes=st.sampled_from([(".*",), ("relu", "Conv.*"), ("nothing",)]),
    start_name_regexes=st.sampled_from([(".*",), ("a/b.*",)]),
    trim_name_regexes=st.sampled_from([(), ("a/b",), ("relu",)]),
    show_name_regexes=st.sampled_from([(".*",), (".*relu",)]),
    hide_name_regexes=st.sampled_from([(), ("a.*",)]),
    account_displayed_op_only=st.booleans(),
    select=st.sets(st.sampled_from(SELECTED), min_size=1).map(frozenset),
    step=st.sampled_from([-1, 0, 1]),
)
questions = st.lists(st.tuples(st.sampled_from(sorted(VIEWS)), options), min_size=2, max_size=8)


def _step(scale: int) -> RunMetadata:
    metadata = RunMetadata()
    host = metadata.step_stats.dev_stats.add(device="/cpu:0")
    device = metadata.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    for place, op in enumerate(("a", "a/b", "a/c", "d")):
        at = 100 * place
        host.node_stats.add(node_name=op, all_start_micros=1 + at, op_end_rel_micros=50, thread_id=1)
        for kernel in ("sgemm", "relu", "MEMCPYHtoD")[: 1 + place]:
            label = "MEMCPYHtoD 64 bytes (Pinned to Device)"
            duration = scale * (3 + place)
            device.node_stats.add(
                node_name=f"{op}:{kernel}", all_start_micros=9 + at, op_end_rel_micros=duration, timeline_label=label
            )
    metadata.provenance.frames.add(file="train.py", line=3, function="step")
    metadata.provenance.frames.add(file="model.py", line=7, function="forward")
    for op, type_, inputs in (("a/b", "Conv2D", []), ("a/c", "Relu", ["a/b"]), ("d", "", ["a"])):
        stack = [0, 1] if op != "d" else [0]
        metadata.provenance.annotations.add(path=op, op=type_, inputs=inputs, flops=10, runs=1, stack=stack)
    return metadata


def _profiler(steps: int = 2) -> Profiler:
    profiler = Profiler()
    for step in range(steps):
        profiler.add_recorded_step(step, _step(1 + step))
    return profiler


def _answer(profiler: Profiler, view: str, asked: Options) -> tuple[str, bytes]:
    try:
        report = profiler.reporter.ask(view, asked)
    except ProfilerError as error:
        return str(error), b""
    return report.text, report.message.SerializeToString(deterministic=True)


@pytest.mark.medium
@settings(max_examples=examples(40), deadline=None)
@given(questions)
def test_an_answer_does_not_depend_on_the_questions_before(asked):
    profiler = _profiler()
    for view, words in asked:
        assert _answer(profiler, view, words) == _answer(_profiler(), view, words)


@settings(max_examples=examples(20), deadline=None)
@given(st.sampled_from(sorted(VIEWS)), options)
def test_an_answer_knows_the_step_that_was_added_since(view, asked):
    profiler = _profiler(steps=1)
    _answer(profiler, view, asked)
    profiler.add_recorded_step(1, _step(2))
    assert _answer(profiler, view, asked) == _answer(_profiler(), view, asked)


def test_the_same_step_again_adds_up():
    asked = Options(select=frozenset(("micros",)))
    profiler = _profiler(steps=1)
    before = profiler.reporter.ask("scope", asked).message.total_exec_micros
    profiler.add_recorded_step(0, _step(1))
    assert profiler.reporter.ask("scope", asked).message.total_exec_micros == 2 * before
