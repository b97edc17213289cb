"""Steps that no tracer would write, each of which once made a converter do wrong; most were found by fuzzing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from reference.in_python import use_python

import collector
import collector.testing
from collector.protos import DeviceStepStats, NodeExecStats, Provenance, RunMetadata, StepStats
from collector.timeline import Timeline, chrome_trace

START_NS = 1_700_000_000_000_000_000


@pytest.fixture(params=["native", "python"])
def each_backend(request, monkeypatch):
    if request.param == "python":
        use_python(monkeypatch)


def kernels(*nodes, device="/gpu:0/stream:7"):
    return StepStats(dev_stats=[DeviceStepStats(device=device, node_stats=nodes)])


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def no_key_twice(pairs):
    keys = [key for key, _ in pairs]
    assert sorted(set(keys)) == sorted(keys)
    return dict(pairs)


def test_a_label_that_says_our_own_words_does_not_say_them_twice(each_backend):
    step = kernels(
        *(
            NodeExecStats(
                node_name="k",
                timeline_label="k correlation:3 waited_ns:4",
                all_start_nanos=START_NS + 100 * number,
                all_end_rel_nanos=10,
                scheduled_nanos=START_NS - 7,
                correlation_id=9,
            )
            for number in range(3)  # what repeats is remembered, and drawn in another way
        )
    )
    trace = json.loads(chrome_trace(step), object_pairs_hook=no_key_twice)
    assert [event["args"] for event in slices(trace)] == [{"correlation": 3, "waited_ns": 4}] * 3


def test_durations_left_out_are_added_up_as_far_as_64_bits_go(each_backend):
    longest = 2**51
    nodes = [NodeExecStats(node_name="k", all_start_nanos=START_NS, all_end_rel_nanos=longest) for _ in range(4200)]
    drawn = json.loads(chrome_trace(kernels(*nodes), max_events=1))["otherData"]["drawn"]
    assert (drawn["left_out"], drawn["left_out_ns"]) == (4199, 2**63 - 1)


def test_losses_at_impossible_times_are_drawn_at_the_edges(each_backend):
    step = kernels(NodeExecStats(node_name="k", all_start_nanos=-(2**62), all_end_rel_nanos=10))
    provenance = Provenance(ledger={"records_dropped": 2})
    provenance.losses.add(figure="records_dropped", at_nanos=[-(2**63), 2**63 - 1])
    trace = json.loads(chrome_trace(RunMetadata(step_stats=step, provenance=provenance)))
    marks = [event["ts"] for event in trace["traceEvents"] if event["ph"] == "i"]
    assert marks == [0, 2**53 / 1000]


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 174_761, 174_762, 174_763])
def test_control_characters_before_the_last_letter(length):
    """Each takes six letters, so that the one after them is written at the very end of the room there is."""
    name = "\x01" * length + "a"
    step = kernels(NodeExecStats(node_name=name, all_start_micros=5, all_end_rel_micros=1), device="/cpu:0")
    assert [event["name"] for event in slices(json.loads(chrome_trace(step)))] == [name]
    compatible = json.loads(Timeline(step).generate_chrome_trace_format())
    assert [event["args"]["name"] for event in slices(compatible)] == [name]


@pytest.mark.slow
def test_thousands_of_kinds_and_threads_take_no_time_that_grows_with_their_square():
    """Each was looked for among all others: minutes for what takes less than a second."""
    many = 60_000
    copies = [
        NodeExecStats(
            node_name=f"MEMCPY{number}",
            timeline_label=f"MEMCPY{number} 8 bytes",
            all_start_nanos=START_NS + number,
            all_end_rel_nanos=1,
        )
        for number in range(many)
    ]
    calls = [
        NodeExecStats(node_name="f", all_start_nanos=START_NS + number, all_end_rel_nanos=1, thread_id=number)
        for number in range(many)
    ]
    step = kernels(*copies, device="/gpu:0/memcpy")
    step.dev_stats.add(device="/cpu:0", node_stats=calls, thread_names=dict.fromkeys(range(many), "t"))
    trace = json.loads(chrome_trace(step))
    assert len(slices(trace)) == 2 * many
    threads = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert len(threads) == many + 1


@pytest.mark.medium
def test_the_converters_fuzzers_seeds_and_finds_still_hold(root, tmp_path):
    folders = [Path(folder) for folder in collector.testing.__path__]
    program = next((folder / "replay_converter" for folder in folders if (folder / "replay_converter").exists()), None)
    if program is None:
        pytest.skip("WHAT FUZZING FOUND WAS NOT TRIED AGAIN: only an editable install builds replay_converter")
    seeds = tmp_path / "seeds"
    subprocess.run([sys.executable, root / "fuzz" / "converter_seeds.py", seeds], check=True, env={**os.environ})
    files = [*sorted(seeds.iterdir()), *sorted((root / "fuzz" / "corpus" / "converter").iterdir())]
    done = subprocess.run([program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.match(rf"{len(files)} inputs", done.stdout)


def test_memory_taken_before_a_step_begins_goes_to_a_counter_of_its_own(tmp_path):
    """Where the counter of the step before is still in use then: values go forward in time, one at each."""

    def step(start_us):
        memory = {
            "allocator_name": "cpu",
            "allocation_records": [
                {"alloc_micros": start_us - 50, "alloc_bytes": 8},
                {"alloc_micros": start_us, "alloc_bytes": 8},
            ],
        }
        node = NodeExecStats(node_name="op", all_start_micros=start_us, all_end_rel_micros=10, memory=[memory])
        return StepStats(dev_stats=[DeviceStepStats(device="/cpu:0", node_stats=[node])])

    first = START_NS // 1000
    output = tmp_path / "all.json"
    collector.merge([step(first), step(first + 60), step(first + 100)], output)
    values = {}
    for event in json.loads(output.read_text())["traceEvents"]:
        if event["ph"] == "C":
            values.setdefault(event["name"], []).append(event["ts"])
    assert values == {"memory cpu": [0, 10, 60], "memory cpu (2)": [50, 100]}


def test_a_tensor_of_a_node_that_ends_beyond_64_bits_is_left_out(each_backend):
    longest = 2**63 - 1
    node = NodeExecStats(node_name="a", all_start_nanos=9001, all_end_rel_nanos=longest)
    description = node.output.add(slot=0).tensor_description
    description.allocation_description.requested_bytes = 64
    whole = NodeExecStats(node_name="b", all_start_nanos=9001, all_end_rel_nanos=5)
    trace = json.loads(chrome_trace(kernels(node, whole, device="/cpu:0")))
    assert [event["name"] for event in slices(trace)] == ["b"]
    assert not [event for event in trace["traceEvents"] if event["ph"] == "C"]


@pytest.mark.parametrize("op_end", [1, 60, 0xFFFF_FFFE, 0xFFFF_FFFF])
def test_the_end_of_an_op_beyond_its_label_does_not_count(op_end):
    node = NodeExecStats(
        node_name="a name of an op that is longer than its label",
        timeline_label="x",
        all_start_nanos=START_NS,
        all_end_rel_nanos=10,
        op_end=op_end,
    )
    (event,) = slices(json.loads(chrome_trace(kernels(node, device="/cpu:0"))))
    assert event["name"] == node.node_name
