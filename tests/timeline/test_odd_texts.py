"""Every text of a recording may be anything, and each drawn file of it stays one that can be read."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("hypothesis")

from captures import START_NS, CaptureBuilder
from hypothesis import example, given, settings
from hypothesis import strategies as st
from properties import examples
from reference.any_recording import recordings

import collector
from collector.recording.recording import Recording
from collector.timeline import Timeline

LETTERS = st.one_of(
    st.sampled_from('"\\/<>&\n\x00\x7f\x1b\u2028\ufeff{}[]:,@#='), st.characters(exclude_categories=["Cs"])
)
ODD = st.text(LETTERS, max_size=8)


def members(pairs):
    """An object of JSON, each key of which stands once."""
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def with_texts(recording, texts):
    """The recording with other texts of its ops, kernels, threads, counters, collectives and NVTX ranges."""
    capture = recording.to_capture()
    capture["strings"] = [f"{text}{number}" for number, text in enumerate(texts[: len(capture["strings"])])]
    return Recording.from_capture(capture)


@pytest.mark.medium
@settings(max_examples=examples(40))
@given(recording=recordings(3), texts=st.lists(ODD, min_size=10, max_size=10, unique=True))
def test_drawn_traces_are_json_whatever_their_texts_are(tmp_path_factory, recording, texts):
    folder = tmp_path_factory.mktemp("odd")
    odd = with_texts(recording, texts)
    odd.save(folder / "step.json")
    json.loads((folder / "step.json").read_text(), object_pairs_hook=members)
    step = collector.load(folder / "step.json")
    assert not step.skipped
    json.loads(Timeline(step.step_stats).generate_chrome_trace_format(show_memory=True), object_pairs_hook=members)


@pytest.mark.medium
@given(name=ODD, unit=ODD)
@example(name='clock "x"', unit='a"b\\')
def test_counters_come_back_whatever_they_and_their_units_are_called(tmp_path_factory, name, unit):
    path = tmp_path_factory.mktemp("odd") / "step.json"
    build = CaptureBuilder()
    texts = {"name_id": build.text(name), "unit_name_id": build.text(unit)}
    build.raw("counter_samples", start_ns=START_NS + 2000, sample=5, **texts)
    build.kernel("k", 1000, 5000).recording().save(path)
    events = json.loads(path.read_text(), object_pairs_hook=members)["traceEvents"]
    assert any(event["ph"] == "C" and event["args"] == {unit: 5} for event in events)
    found = collector.load(path).recording.counter_samples
    assert (found.texts("name_id"), found.texts("unit_name_id")) == ([name], [unit])
