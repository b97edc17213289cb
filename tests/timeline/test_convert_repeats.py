"""Parsing repeated labels once, and writing numbers eight digits at a time, changes no output."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count

import pytest
from reference.in_python import use_python

from collector.errors import InvalidFileError
from collector.protos import StepStats
from collector.timeline import Timeline, chrome_trace

BASE_US = 1_600_000_000_000_000
LONG = "void gemm<float, 128, 64, 32, true, false>(float const*, float*) regs:64 shm:1024 grid:8,1,1 block:256,1,1"


def one_changed(text: str) -> list[str]:
    """The text, and texts of the same length that differ from it in one byte each."""
    return [text] + [text[:at] + ("#" if text[at] != "#" else "+") + text[at + 1 :] for at in range(len(text))]


def step_of(pairs: list[tuple[str, str]], device: str = "/gpu:0/stream:7") -> StepStats:
    """A node for each name and label, one after the other."""
    step = StepStats()
    of_device = step.dev_stats.add(device=device)
    for index, (name, label) in enumerate(pairs):
        of_device.node_stats.add(
            node_name=name,
            timeline_label=label,
            all_start_micros=BASE_US + 10 * index,
            all_end_rel_micros=5,
            scheduled_micros=BASE_US + 10 * index - index % 3,
            correlation_id=index % 4,
        )
    return step


def both(draw: Callable[[], object]) -> tuple[object, object]:
    """What the extension gives, and what Python does."""
    native = draw()
    with pytest.MonkeyPatch.context() as patch:
        use_python(patch)
        return native, draw()


def assert_tensorflow_timeline_is_the_same(step: StepStats) -> None:
    """TensorFlow's timeline of the step too is what Python makes of it."""
    native, plain = both(lambda: Timeline(step).generate_chrome_trace_format())
    assert native == plain


@pytest.mark.parametrize("device", ["/gpu:0/stream:7", "/cpu:0"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_labels_that_differ_in_one_byte_are_kept_apart(device: str, times: int) -> None:
    pairs = [("conv:sgemm", label) for label in one_changed(LONG)] + [
        (name, LONG) for name in one_changed("conv:sgemm")
    ]
    step = step_of([pair for pair in pairs for _ in range(times)], device)
    native, plain = both(lambda: chrome_trace(step))
    assert native == plain
    assert_tensorflow_timeline_is_the_same(step)
    kernels = [event["args"].get("kernel") for event in json.loads(native)["traceEvents"] if event["ph"] == "X"]
    assert len(kernels) == times * len(pairs)


@pytest.mark.medium
def test_labels_that_come_by_turns_and_again_after_others() -> None:
    labels = one_changed(LONG)
    by_turns = [("conv:sgemm", labels[index % 7]) for index in range(100)]
    others = [(f"op{number}:kernel", f"kernel{number}(int) regs:{number}") for number in range(3000)]
    step = step_of(by_turns + others + by_turns + others)
    native, plain = both(lambda: chrome_trace(step))
    assert native == plain
    assert_tensorflow_timeline_is_the_same(step)


def test_the_same_words_mean_something_else_on_a_host() -> None:
    step = step_of([("x:MEMCPYHtoD", "MEMCPYHtoD = Copy(4096 bytes (a to b), c)")] * 3)
    step.MergeFrom(step_of([("x:MEMCPYHtoD", "MEMCPYHtoD = Copy(4096 bytes (a to b), c)")] * 3, "/cpu:0"))
    native, plain = both(lambda: chrome_trace(step))
    assert native == plain
    assert_tensorflow_timeline_is_the_same(step)
    kinds = [event["cat"] for event in json.loads(native)["traceEvents"] if event["ph"] == "X"]
    assert sorted(kinds) == ["memcpy"] * 3 + ["op"] * 3


def test_empty_and_short_texts_repeat_too() -> None:
    step = step_of([(name, label) for name in ("", "a", "abcdefgh") for label in ("", "b", "abcdefgh")] * 3)
    native, plain = both(lambda: chrome_trace(step))
    assert native == plain
    assert_tensorflow_timeline_is_the_same(step)


def test_inputs_of_ops_that_repeat_are_followed_each_time() -> None:
    """Also where the first of them is met late: what came before has its lanes, and keeps them."""
    step = step_of([("k", "k()")] * 5, "/job:w/replica:0/task:0/device:CPU:0")
    ops = step.dev_stats[0].node_stats
    for node in ops:
        node.all_end_rel_micros = 25
    for index in range(4):
        ops.add(node_name="taker", timeline_label="taker = Add(maker, k)", all_start_micros=BASE_US + 100 + index)
    maker = step.dev_stats.add(device="/job:w/replica:0/task:0/device:GPU:0").node_stats
    maker.add(node_name="maker", timeline_label="maker = Op()", all_start_micros=BASE_US).output.add()
    assert_tensorflow_timeline_is_the_same(step)
    events = json.loads(Timeline(step).generate_chrome_trace_format())["traceEvents"]
    assert [event["ph"] for event in events].count("s") == 4
    assert {event["tid"] for event in events if event["ph"] == "X"} == {0, 1, 2}


def test_a_broken_text_is_refused_however_often_it_comes() -> None:
    wire = step_of([("k:op", "label")] * 3).SerializeToString().replace(b"k:op", b"k:\xffp")
    with pytest.raises(InvalidFileError):
        Timeline(wire).generate_chrome_trace_format()


def test_every_length_of_number_is_written_as_python_writes_it() -> None:
    numbers = {10**power + change for power in range(19) for change in (-1, 0, 1)} | {2**63 - 1, 2**53, 2**32}
    step = StepStats()
    device = step.dev_stats.add(device="/job:w/replica:0/task:0/device:CPU:0")
    for start, name in zip(sorted(numbers | {-number for number in numbers} | {-(2**63)}), count(), strict=False):
        device.node_stats.add(node_name=f"op{name}", timeline_label=f"op{name} = Op()", all_start_micros=start)
    native, plain = both(lambda: Timeline(step).generate_chrome_trace_format())
    assert native == plain
    shown = [event["ts"] for event in json.loads(native)["traceEvents"] if event["ph"] == "X"]
    assert shown == [node.all_start_micros for node in device.node_stats]


def test_times_of_every_length_keep_their_nanoseconds() -> None:
    numbers = sorted({10**power + change for power in range(16) for change in (-1, 0, 1)})
    step = StepStats()
    device = step.dev_stats.add(device="/gpu:0/stream:7")
    device.node_stats.add(node_name="first", all_start_nanos=BASE_US * 1000, all_end_rel_nanos=1)
    for number in numbers:
        device.node_stats.add(node_name="k", all_start_nanos=BASE_US * 1000 + number, all_end_rel_nanos=number % 1009)
    native, plain = both(lambda: chrome_trace(step))
    assert native == plain
