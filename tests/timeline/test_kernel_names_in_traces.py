"""The whole name of a kernel comes from its column, not from its label."""

from __future__ import annotations

import json

import pytest

import collector
from collector.stepstats.from_recording import run_metadata, step_stats

NAMES = {"_Z3addIfEvPT_i": "void add<float>(float*, int)", "void odd@@name<int>(int)": "void odd@@name<int>(int)"}


def _drawn(step) -> set[str]:
    events = json.loads(collector.chrome_trace(step))["traceEvents"]
    return {event["args"]["kernel"] for event in events if "kernel" in event.get("args", {})}


@pytest.mark.parametrize("label", [None, "", "other@@op:kernel#id=1# regs:64"])
def test_labels_do_not_change_the_names_of_kernels(build, label):
    for start, name in enumerate(NAMES):
        build.kernel(name, 100 * start)
    step = run_metadata(build.recording())
    for device in step.step_stats.dev_stats:
        for node in device.node_stats:
            node.timeline_label = node.timeline_label if label is None else label
    assert _drawn(step) == set(NAMES.values())


def test_a_step_without_names_has_those_of_its_labels(build):
    build.kernel("_Z3addIfEvPT_i", 0)
    assert _drawn(step_stats(build.recording())) == {"void add<float>(float*, int)"}
