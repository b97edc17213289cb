"""The end of an op in a node's name or label is recorded: what is drawn is not parsed out of text."""

from __future__ import annotations

import json

import pytest

import collector
from collector.protos import RunMetadata
from collector.stepstats.from_recording import run_metadata, serialized

UNUSUAL = "loss = a(b) in c\nnext, line"
"""An annotation that the grammar of labels cannot tell from its surroundings."""


@pytest.fixture
def recording(build):
    build.launch(1, 100).kernel("_Z4reluPf", 1000, correlation_id=1)
    build.launch(2, 3000).kernel("_Z4reluPf", 4000, correlation_id=2)
    build.launch(3, 6000).memcpy(7000, correlation_id=3)
    build.launch(4, 9000).memset(9700, correlation_id=4)
    build.annotation("relu", 50, 700, 1, 1)  # the kernel's own name
    build.annotation(UNUSUAL, 5900, 800, 2, 3)
    return build.recording()


def drawn(data):
    """Name -> arguments of the slices that have an op or are GPU work."""
    slices = [event for event in json.loads(collector.chrome_trace(data))["traceEvents"] if event["ph"] == "X"]
    return {(event["name"], round(1000 * event["ts"])): event.get("args", {}) for event in slices}


def test_the_fields_say_where_names_and_labels_are_split(recording):
    step = run_metadata(recording).step_stats
    ends = {
        device.device: [(node.node_name, node.op_end) for node in device.node_stats]
        for device in step.dev_stats
        if device.device.startswith("/gpu")
    }
    works = [("relu:relu", 4), ("relu:relu", 0), (f"{UNUSUAL}:MEMCPYHtoD", len(UNUSUAL)), ("MEMSET:MEMSET", 0)]
    assert ends["/gpu:0/stream:all"] == ends["/gpu:0/stream:7"] == works
    assert ends["/gpu:0/memcpy"] == works[2:]
    annotations = [node for node in step.dev_stats[0].node_stats if "cu" not in node.node_name]
    assert [node.timeline_label[: node.op_end] for node in annotations] == [
        "relu = relu",
        f"{UNUSUAL} = {UNUSUAL}",
    ]


def test_an_annotation_with_the_name_of_its_kernel_is_its_op(recording):
    base = 50
    shown = drawn(serialized(recording))
    assert shown["relu", 1000 - base]["op"] == "relu"
    assert "op" not in shown["relu", 4000 - base]
    assert shown["MEMCPYHtoD", 7000 - base]["op"] == UNUSUAL
    assert "op" not in shown["MEMSET", 9700 - base]


def test_a_label_is_not_parsed_for_an_annotation(recording):
    shown = drawn(serialized(recording))
    assert shown[UNUSUAL, 5850] == {}  # the op is the name; there are no inputs


def test_without_the_field_names_are_parsed_as_before(recording):
    message = RunMetadata.FromString(serialized(recording))
    for device in message.step_stats.dev_stats:
        for node in device.node_stats:
            node.op_end = 0
    shown = drawn(message.SerializeToString())
    assert "op" not in shown["relu", 950]
    assert shown["MEMCPYHtoD", 6950]["op"] == UNUSUAL


@pytest.mark.parametrize("end", [1, 3, 8, 9, 2**32 - 1])
def test_an_end_beyond_the_name_or_label_is_ignored(recording, end):
    message = RunMetadata.FromString(serialized(recording))
    for device in message.step_stats.dev_stats:
        for node in device.node_stats:
            node.op_end = end
    assert len(drawn(message.SerializeToString())) == len(drawn(serialized(recording)))
