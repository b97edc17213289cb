"""The times of losses: stated as far as they are known, and drawn in the timeline."""

from __future__ import annotations

import json

import pytest

from collector.recording.capture import Part
from collector.recording.cupti_enums import CUPTI_OVERHEADS, OVERHEAD_KINDS
from collector.recording.loss_times import PLACES, times_of_losses
from collector.recording.recording import Recording
from collector.stepstats.from_recording import run_metadata
from collector.timeline import chrome_trace


def test_nothing_lost_has_no_times(build):
    build.launch(5, 1500).kernel("add", 7250, 100, correlation_id=5)
    recording = build.recording()
    assert times_of_losses(recording) == {}
    assert not run_metadata(recording).provenance.losses


def test_a_launch_without_activity_is_lost_when_it_was_called(build, start_ns):
    build.launch(5, 1500).launch(6, 2500).kernel("add", 7250, 100, correlation_id=5)
    assert times_of_losses(build.recording()) == {"launches_without_kernel": [start_ns + 2500]}


def test_a_launch_at_the_very_begin_of_the_step_is_of_the_step(build, start_ns):
    build.launch(5, 0).launch(6, 2500).kernel("add", 7250, 100, correlation_id=6)
    assert times_of_losses(build.recording()) == {"launches_without_kernel": [start_ns]}


def test_an_activity_without_a_time_is_lost_when_it_was_launched(build, start_ns):
    build.launch(5, 1500).kernel("add", 7250, -8000, correlation_id=5)
    assert times_of_losses(build.recording()) == {"invalid_timestamps": [start_ns + 1500]}


def test_an_activity_that_had_not_ended_is_lost_when_it_was_launched(build, start_ns):
    build.launch(4, 500).kernel("add", 800, 100, correlation_id=4, stream_id=8).launch(5, 1500)
    build.raw("kernels", start_ns=start_ns + 2000, stream_id=7, correlation_id=5, name_id=build.text("slow"))
    assert times_of_losses(build.recording()) == {"unfinished": [start_ns + 1500]}


def test_an_activity_that_was_lost_with_its_context_is_lost_when_it_was_launched(build, start_ns):
    build.launch(5, 1500).raw("kernels", stream_id=7, correlation_id=5, name_id=build.text("ended"))
    build.call("cuCtxSynchronize", 9000, correlation_id=6, return_value=700)
    assert times_of_losses(build.recording()) == {"lost_with_context": [start_ns + 1500]}


def test_an_activity_that_ends_too_late_is_lost_where_it_starts(build, start_ns):
    build.launch(5, 1500).kernel("add", 7250, 10**12, correlation_id=5)
    assert times_of_losses(build.recording()) == {"late": [start_ns + 7250]}


@pytest.mark.parametrize("kind", OVERHEAD_KINDS)
@pytest.mark.parametrize("offset_ns", [-5000, 999_500, 2_000_000], ids=["before", "across the end", "after"])
def test_of_the_overheads_outside_the_step_those_of_cupti_are_left_out(build, start_ns, kind, offset_ns):
    """CUPTI's flushes at the ends of a session are those of the session; the driver's work is the program's."""
    for offset in (offset_ns, 2500):
        build.raw("overheads", start_ns=start_ns + offset, end_ns=start_ns + offset + 1000, overhead_kind=kind)
    recording = build.recording()
    is_counted = kind not in CUPTI_OVERHEADS
    assert len(recording.overheads) == 1
    assert recording.ledger.early + recording.ledger.late == int(is_counted)
    assert len(recording.out_of_window.overheads) == int(is_counted)


def test_a_copy_between_gpus_without_a_record_is_lost_where_it_was_called(build, start_ns):
    build.environment = {"peer_copies": False}
    build.call("cudaMemcpyPeerAsync_v4000", 1500, correlation_id=4).memcpy(2500, correlation_id=5)
    assert times_of_losses(build.recording()) == {"peer_copies_unrecorded": [start_ns + 1500]}


def test_a_kernel_without_a_launch_is_where_it_is(build, start_ns):
    build.launch(5, 1500).kernel("add", 7250, 100, correlation_id=5).kernel("mul", 8000, 100, correlation_id=9)
    assert times_of_losses(build.recording()) == {"kernels_without_launch": [start_ns + 8000]}


def test_a_kernel_whose_launch_began_before_the_step_is_not_lost(build, start_ns):
    build.launch(5, -600).kernel("add", 7250, 100, correlation_id=5).kernel("mul", 80_000, 100, correlation_id=9)
    assert times_of_losses(build.recording()) == {"kernels_without_launch": [start_ns + 80_000]}
    build.launch(6, 1500).kernel("sub", 90_000, 100, correlation_id=6)
    assert times_of_losses(build.recording()) == {"kernels_without_launch": [start_ns + 80_000]}


def test_a_launch_into_a_graph_whose_capture_began_before_the_step_is_not_lost(build, start_ns):
    build.call("cudaStreamBeginCapture_v10000", -100, 10).launch(2, 2000)
    build.call("cudaStreamEndCapture_v10000", 4000, 10).launch(4, 5000)
    assert times_of_losses(build.recording()) == {"launches_without_kernel": [start_ns + 5000]}


def test_a_kernel_that_began_after_calls_were_left_out_is_not_lost(build, start_ns):
    build.counters["shed_api_calls_ns"] = 5000
    build.launch(5, 1500).kernel("add", 2500, 100, correlation_id=5)
    build.kernel("mul", 3500, 100, correlation_id=3).kernel("sub", 80_000, 100, correlation_id=12)
    found = times_of_losses(build.recording())
    assert found == {"kernels_without_launch": [start_ns + 3500], "shed_api_calls_ns": [start_ns + 5000]}


def test_a_launch_under_an_unknown_annotation_is_when_it_was_called(build, start_ns):
    build.launch(5, 1500).kernel("add", 7250, 100, correlation_id=5)
    build.raw("external_correlations", correlation_id=5, external_id=77, external_kind=5)
    assert times_of_losses(build.recording()) == {"correlations_unmatched": [start_ns + 1500]}


def test_a_part_does_not_take_launches_that_its_end_cuts_for_lost_ones(build, start_ns):
    """Either launch without a kernel may be the lost one: the ledger has their number, and no time is known."""
    build.launch(5, 1500).launch(6, 52_000).launch(7, 300_000).kernel("add", 107_250, 100, correlation_id=5)
    whole = build.recording()
    assert times_of_losses(whole) == {"launches_without_kernel": [start_ns + 52_000, start_ns + 300_000]}
    part = whole.between(start_ns, start_ns + 100_000)
    assert (part.ledger.launches_without_kernel, part.ledger.launches_cut) == (1, 1)
    assert times_of_losses(part) == {}
    later = whole.between(start_ns + 200_000, start_ns + 400_000)
    assert times_of_losses(later) == {"launches_without_kernel": [start_ns + 300_000]}


def test_copies_at_the_end_of_a_part_that_is_continued_have_no_time_of_a_loss(build, start_ns):
    """The record of the last copy may be in the next part."""
    build.environment = {"peer_copies": False, "devices": {0: "A", 1: "B"}}
    build.call("cudaMemcpyPeerAsync_v4000", 30_000, correlation_id=3)
    build.call("cudaMemcpyAsync_v3020", 60_000, correlation_id=4).memcpy(90_000, correlation_id=4)
    assert times_of_losses(build.recording()) == {"peer_copies_unrecorded": [start_ns + 30_000]}
    build.call("cudaMemcpyAsync_v3020", 120_000, correlation_id=8)
    recording = Recording.from_capture(build.capture() | {"part": Part(None, 1, is_continued=True)})
    assert recording.ledger.peer_copies_unrecorded == 1
    assert times_of_losses(recording) == {}


def test_of_many_losses_the_first_of_each_part_of_the_step_is_reported(build, start_ns):
    for number in range(1, 10 * PLACES):  # they fill the first two of the parts of 10,000 ns
        build.launch(number, 20 * number)
    found = times_of_losses(build.recording())["launches_without_kernel"]
    assert found == [start_ns + 20, start_ns + 10_020]


def test_they_are_drawn_where_they_happened(build, start_ns):
    build.launch(5, 1500).launch(6, 2500).kernel("add", 7250, 100, correlation_id=5)
    trace = json.loads(chrome_trace(build.recording()))
    instants = [event for event in trace["traceEvents"] if event["ph"] == "i"]
    calls = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["name"] == "cudaLaunchKernel"]
    assert [event["name"] for event in instants] == ["lost: 1 launch succeeded but no activity of it was recorded"]
    assert instants[0]["ts"] == max(call["ts"] for call in calls)
