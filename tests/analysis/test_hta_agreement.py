"""Idle time and overlap as HolisticTraceAnalysis gives them, wherever it is right, and why it differs elsewhere.

HTA 0.5.0 was run without rounding to whole microseconds and with the last profiler step. What is right is what
counts.json says, which ours equals on every file (test_busy_time.py).
"""

from __future__ import annotations

import json

import pytest

from collector.analysis import devices

EQUAL = {
    "broken_derived/nan_and_infinity",
    "broken_derived/repeated_kernels",
    "hta/a100_rank0of2_nccl_metadata",
    "hta/a100_rank3of8_diff_control",
    "hta/gp100_gpu_user_annotation",
    "hta/mi250_minitoy",
    "hta/sampled_of128/rank0",
    "hta/sampled_of128/rank1",
    "hta/v100_rank1of2_profile_memory",
    "kineto/resnet50_13_streams",
    "kineto/v100_resnet50_workers4",
    "torch_tutorial/h100_transformer_after",
    "torch_tutorial/h100_transformer_before",
}
SYNCHRONIZATIONS = "It takes waits for work of the GPU, as they have a stream."
WITHOUT_CALL = "It drops kernels and copies whose call is not in the trace."
UNREAD = "It does not read the file."
NOTHING = "It fails where nothing ran on a GPU that it knows."
REASONS = {
    "broken_derived/bare_event_list_no_closing_bracket": UNREAD,
    "broken_derived/invalid_utf8_names": UNREAD,
    "broken_derived/missing_closers": UNREAD,
    "broken_derived/negative_missing_dur_and_args": "It fails on durations below 0.",
    "broken_derived/string_timestamps": UNREAD,
    "broken_derived/truncated_gzip_stream": UNREAD,
    "broken_derived/truncated_mid_event": UNREAD,
    "hta/a100_alexnet": SYNCHRONIZATIONS,
    "hta/a100_cupti_counters_no_kernels": NOTHING,
    "hta/a100_event_sync": SYNCHRONIZATIONS,
    "hta/a100_event_sync_multi_stream": SYNCHRONIZATIONS,
    "hta/a100_rank0of16_orphan_kernels": WITHOUT_CALL,
    "hta/a100_simple_add": SYNCHRONIZATIONS,
    "hta/a100_triton_example": "It takes an op of the host for work of the GPU, as it names a stream.",
    "hta/odd_cpu_only_rank34": NOTHING,
    "hta/odd_large_integer": NOTHING,
    "hta/odd_rank_unavailable": NOTHING,
    "hta/odd_tiny_compare_base": WITHOUT_CALL,
    "hta/odd_tiny_compare_test": WITHOUT_CALL,
    "hta/v100_displaytimeunit_ns": "It keeps 16 digits of microseconds in binary doubles, which lose up to 250 ns.",
    "hta/v100_rank1of2_diff_test_graphs": WITHOUT_CALL,
    "kineto/mock_cupti28_graph_ids": SYNCHRONIZATIONS,
    "kineto/v100_resnet50_early_format": UNREAD,
    "tf_ikhlestov/cpu_timeline_03_merged_5_runs": NOTHING,
    "tf_ikhlestov/gpu_timeline_01": NOTHING,
    "tf_ikhlestov/gpu_timeline_02_step_0": NOTHING,
    "tf_ikhlestov/gpu_timeline_02_step_1": NOTHING,
    "tf_ikhlestov/gpu_timeline_02_step_2": NOTHING,
    "tf_ikhlestov/gpu_timeline_03_merged_5_runs": NOTHING,
}
"""File -> why HTA's figures are not the right ones."""
TOLERANCE_NS = 10


@pytest.fixture(scope="module")
def of_hta(gpu_traces):
    """The figures of HTA by file, without those of several files together."""
    golden = json.loads((gpu_traces / "hta_golden.json").read_text())
    return {
        name.removesuffix(".json.gz"): modes.get("with_last_step_ns", {})
        for name, modes in golden.items()
        if name.endswith(".json.gz")
    }


def idle_and_span(figures):
    """In ns; None where HTA gives none."""
    found = figures.get("temporal_breakdown")
    return found and tuple(round(float(found[0][name]) * 1000) for name in ("idle_time(us)", "kernel_time(us)"))


def is_close(ours, theirs):
    return theirs is not None and all(abs(own - other) <= TOLERANCE_NS for own, other in zip(ours, theirs, strict=True))


def test_every_file_is_equal_or_has_a_reason(of_hta, counts):
    assert of_hta.keys() == EQUAL | REASONS.keys()
    assert not EQUAL & REASONS.keys()
    for name in REASONS:
        per_device = counts[f"{name}.json.gz"].get("gpu", {}).get("per_device", {})
        work = [device["all_gpu_work"] for device in per_device.values()]
        assert not work or not is_close((work[0]["idle_ns"], work[0]["span_ns"]), idle_and_span(of_hta[name])), name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EQUAL))
def test_where_it_is_right_ours_is_equal(of_hta, load_trace, name):
    (row,) = devices(load_trace(f"{name}.json.gz"), window="span")
    assert is_close((row["idle_ns"], row["window_ns"]), idle_and_span(of_hta[name]))
    overlap = [each["comp_comm_overlap_pctg"] for each in of_hta[name].get("comm_comp_overlap", [])]
    if row["communication_ns"] and overlap:
        assert round(100 * row["overlap_ns"] / row["communication_ns"], 2) == pytest.approx(overlap[0], abs=0.011)
