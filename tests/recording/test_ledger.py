"""The ledger: launches compared with activities, and losses in words."""

from __future__ import annotations

import dataclasses
import re

import pytest
from captures import START_NS

import collector
from collector.recording.capture import Part
from collector.recording.context_errors import STICKY_ERRORS
from collector.recording.ledger import LOSSES, Ledger
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu


def test_a_runtime_call_and_the_driver_call_inside_it_are_one_launch(build):
    # Trap: one launch, two callbacks.
    for correlation in (1, 2, 3):
        build.launch(correlation, 1000 * correlation)
        build.kernel("k", 10_000 * correlation, correlation_id=correlation)
    ledger = build.recording().ledger
    assert (ledger.launches_seen, ledger.launches_matched, ledger.launches_without_kernel) == (3, 3, 0)
    assert ledger.complete


@pytest.mark.parametrize(
    "name",
    [
        "cudaLaunchKernel_v7000",
        "cudaLaunchKernel_ptsz_v7000",
        "cudaLaunchKernelExC_v11060",
        "cudaLaunchCooperativeKernel_v9000",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuLaunchCooperativeKernelMultiDevice",
        "cuGraphLaunch",
        "cudaGraphLaunch_v10000",
    ],
)
def test_every_way_to_launch_counts(build, name):
    ledger = build.call(name, 10, correlation_id=4).recording().ledger
    assert (ledger.launches_seen, ledger.launches_without_kernel) == (1, 1)
    assert "1 launch succeeded" in ledger.losses()[0]


@pytest.mark.parametrize(
    "name", ["cudaMemcpy_v3020", "cuLaunchHostFunc", "cudaLaunchHostFunc_v10000", "cuCtxSynchronize"]
)
def test_calls_that_launch_no_kernel_do_not(build, name):
    assert build.call(name, 10, correlation_id=4).recording().ledger.launches_seen == 0


def test_a_graph_launch_is_matched_by_any_of_its_nodes(build):
    build.call("cudaGraphLaunch_v10000", 10, correlation_id=4).memcpy(500, correlation_id=4)
    build.call("cudaGraphLaunch_v10000", 20, correlation_id=5)
    for start in (2000, 4000, 6000):
        build.kernel("node", start, correlation_id=5)
    ledger = build.recording().ledger
    assert (ledger.launches_seen, ledger.launches_matched, ledger.kernels) == (2, 2, 3)


def test_a_launch_that_failed_is_no_loss(build):
    ledger = build.launch(1, 10, return_value=701).recording().ledger
    assert (ledger.launches_failed, ledger.launches_without_kernel) == (1, 0)
    assert ledger.complete


def peer_copies(build):
    """Two copies between GPUs without a record, one through the host, one that failed."""
    build.call("cudaMemcpyPeerAsync_v4000", 10, correlation_id=4).call("cuMemcpyPeerAsync_ptsz", 20, correlation_id=4)
    build.call("cuMemcpy3DPeer", 1000, correlation_id=5)
    build.call("cudaMemcpyPeer_v4000", 2000, correlation_id=6).memcpy(2500, correlation_id=6)
    return build.call("cudaMemcpyPeer_v4000", 4000, correlation_id=7, return_value=1)


def test_copies_between_gpus_that_were_not_recorded_are_a_loss(build):
    build.environment = {"peer_copies": False}
    ledger = peer_copies(build).recording().ledger
    assert ledger.peer_copies_unrecorded == 2
    (loss,) = ledger.losses()
    assert loss.startswith("2 copies, perhaps between GPUs, have no record: add peer_copies to the kinds")


@pytest.mark.parametrize(("devices", "lost"), [({}, 0), ({0: "H100"}, 0), ({0: "H100", 1: "H100"}, 3)])
def test_with_several_gpus_any_copy_without_a_record_may_be_between_them(build, devices, lost):
    """Frameworks copy between GPUs through cudaMemcpyAsync, whose addresses tell the GPUs."""
    build.environment = {"peer_copies": False, "devices": devices}
    build.call("cudaMemcpyAsync_v3020", 10, correlation_id=4).call("cuMemcpyDtoDAsync_v2", 20, correlation_id=5)
    build.call("cudaMemcpy2DAsync_ptsz_v7000", 1000, correlation_id=6)
    build.call("cudaMemcpyAsync_v3020", 2000, correlation_id=7).memcpy(2500, correlation_id=7)
    build.call("cuMemcpyHtoDAsync_v2", 3000, correlation_id=8).call("cudaMemcpy_v3020", 3500, return_value=1)
    build.call("cuStreamBeginCapture_v2", 4000, 10).call("cudaMemcpyAsync_v3020", 4500, correlation_id=9)
    build.call("cuStreamEndCapture", 5000, 10)
    assert build.recording().ledger.peer_copies_unrecorded == lost
    build.call("cudaMemcpyAsync_v3020", 6000, correlation_id=10)
    capture = build.capture()
    capture["part"] = Part(None, first_annotation=1, is_continued=True)  # the last record may be in the next part
    assert Recording.from_capture(capture).ledger.peer_copies_unrecorded == lost


@pytest.mark.parametrize("environment", [{}, {"peer_copies": True}], ids=["not known", "recorded"])
def test_copies_between_gpus_are_no_loss_unless_their_kind_was_left_out(build, environment):
    build.environment = environment
    assert peer_copies(build).recording().ledger.complete


def test_a_part_counts_the_copies_between_gpus_that_were_called_in_it(build, start_ns):
    build.environment = {"peer_copies": False}
    recording = peer_copies(build).recording()
    for first, last, lost in ((0, 700, 1), (700, 1800, 1), (1800, 5000, 0)):
        part = recording.between(start_ns + first, start_ns + last)
        assert part.ledger.peer_copies_unrecorded == lost
    capture = build.capture()
    capture["part"] = Part(start_ns + 700, first_annotation=1, is_continued=True)
    assert Recording.from_capture(capture).ledger.peer_copies_unrecorded == 1


def test_launches_into_a_graph_that_is_being_captured_are_no_loss(build):
    build.launch(1, 100)
    build.call("cudaStreamBeginCapture_v10000", 1000, 10).launch(2, 2000).launch(3, 3000, thread_id=12)
    build.call("cudaStreamEndCapture_v10000", 4000, 10).launch(4, 5000)
    ledger = build.recording().ledger
    assert (ledger.launches_seen, ledger.launches_captured, ledger.launches_without_kernel) == (4, 2, 2)


def test_a_kernel_whose_launch_was_not_seen_is_counted_while_calls_are_recorded(build):
    build.launch(1, 10).kernel("k", 1000, correlation_id=1).kernel("orphan", 3000, correlation_id=99)
    ledger = build.recording().ledger
    assert ledger.kernels_without_launch == 1
    assert any("no launch that was seen" in loss for loss in ledger.losses())


def test_kernels_recorded_without_calls_are_no_loss(build):
    ledger = build.kernel("k", 1000, correlation_id=1).recording().ledger
    assert (ledger.kernels, ledger.kernels_without_launch) == (1, 0)
    assert ledger.complete


def test_a_launch_whose_kernel_has_no_usable_time_is_matched(build):
    build.launch(1, 10).raw("kernels", correlation_id=1, name_id=build.text("k"))
    ledger = build.recording().ledger
    assert (ledger.launches_matched, ledger.kernels, ledger.invalid_timestamps) == (1, 0, 1)


NO_TIME = "1 activity has no usable time (CUPTI gave 0, or an end before the start)"


def _activities(build, *rows):
    """Kernels of (correlation id, stream, start, end), and their launches; a time of 0 stays 0."""
    for correlation, stream, start, end in rows:
        build.launch(correlation, 10 * correlation)
        times = {"start_ns": start and START_NS + start, "end_ns": end and START_NS + end}
        build.raw("kernels", correlation_id=correlation, stream_id=stream, name_id=build.text("k"), **times)
    return build.recording().ledger


def test_work_that_was_running_or_waiting_when_the_recording_ended_is_unfinished(build):
    ledger = _activities(build, (1, 7, 500, 600), (2, 7, 700, 0), (3, 7, 0, 0), (4, 8, 0, 0))
    assert (ledger.unfinished, ledger.invalid_timestamps, ledger.kernels) == (3, 3, 1)
    assert ledger.losses() == ["3 activities were still running or waiting when the recording ended: no end is known"]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 7, 500, 0), (2, 7, 700, 800)],  # later work of the stream has ended
        [(1, 7, 500, 600), (2, 7, 0, 0)],  # nothing shows that anything was running
        [(1, 7, 500, 600), (2, 7, 700, 650)],
        [(0, 7, 500, 0)],  # its place among the launches is not known
    ],
)
def test_other_impossible_times_are_not_those_of_unfinished_work(build, rows):
    ledger = _activities(build, *rows)
    assert (ledger.unfinished, ledger.invalid_timestamps) == (0, 1)
    assert NO_TIME in ledger.losses()


STILL_RUNNING = "1 activity was still running or waiting when the recording ended: no end is known"


def _wait(build, correlation, name, sync_type, **values):
    """A wait of the host after the launches of `_activities`."""
    build.call(name, 10 * correlation, 5, correlation_id=correlation, return_value=values.pop("return_value", 0))
    return build.raw(
        "synchronizations", sync_type=sync_type, correlation_id=correlation, start_ns=START_NS + 10 * correlation,
        end_ns=START_NS + 10 * correlation + 5, **values,
    )  # fmt: skip


def test_work_without_a_start_is_unfinished_if_nothing_waited_for_it(build):
    """CUPTI 13.0.85 gives running work no start either."""
    build.counters["work_not_awaited"] = 1
    ledger = _activities(build, (1, 7, 500, 600), (2, 7, 0, 0), (3, 8, 700, 800))
    assert (ledger.unfinished, ledger.invalid_timestamps) == (1, 1)
    assert ledger.losses() == [STILL_RUNNING]
    assert NO_TIME in _activities(build, (4, 7, 900, 950)).losses()  # which shows that the one before it has ended


@pytest.mark.parametrize(
    ("name", "sync_type", "values", "has_ended"),
    [
        ("cuStreamSynchronize", 3, {"stream_id": 7}, True),
        ("cuStreamSynchronize", 3, {"stream_id": 8}, False),
        ("cuCtxSynchronize", 4, {"stream_id": 0xFFFFFFFF}, True),
        ("cuCtxSynchronize", 4, {"stream_id": 0xFFFFFFFF, "context_id": 5}, False),
        ("cuCtxSynchronize", 4, {"stream_id": 0xFFFFFFFF, "return_value": 999}, False),
        ("cuStreamQuery", 3, {"stream_id": 7, "return_value": 600}, False),  # not ready
        ("cuStreamWaitEvent", 2, {"stream_id": 7}, False),
    ],
)
def test_a_later_wait_that_succeeded_shows_that_work_has_ended(build, name, sync_type, values, has_ended):
    build.counters["work_not_awaited"] = 1
    _wait(build, 3, name, sync_type, **values)
    ledger = _activities(build, (2, 7, 0, 0))
    assert ledger.losses() == [NO_TIME if has_ended else STILL_RUNNING]


def test_a_wait_without_its_call_shows_nothing(build):
    """It may be a query."""
    build.counters["work_not_awaited"] = 1
    build.raw(
        "synchronizations", sync_type=3, stream_id=7, correlation_id=3, start_ns=START_NS + 30, end_ns=START_NS + 31
    )
    assert _activities(build, (2, 7, 0, 0)).losses() == [STILL_RUNNING]


def test_a_wait_before_the_launch_shows_nothing(build):
    build.counters["work_not_awaited"] = 1
    _wait(build, 1, "cuCtxSynchronize", 4)
    assert _activities(build, (2, 7, 0, 0)).losses() == [STILL_RUNNING]


NO_TIMES_AFTER_AN_ERROR = (
    "1 activity has no times: a CUDA error made its context unusable before CUPTI had delivered its record. A journal "
    "or collector.record() has those of earlier work"
)


@pytest.mark.parametrize("is_awaited", [True, False])
def test_work_whose_times_were_lost_with_its_context(build, is_awaited):
    if not is_awaited:
        build.counters["work_not_awaited"] = 1
    _wait(build, 3, "cuCtxSynchronize", 4)
    _wait(build, 5, "cuStreamSynchronize", 3, stream_id=7, return_value=700)
    ledger = _activities(build, (1, 7, 500, 600), (2, 7, 0, 0))
    assert (ledger.lost_with_context, ledger.unfinished, ledger.invalid_timestamps) == (1, 0, 1)
    assert ledger.losses() == [NO_TIMES_AFTER_AN_ERROR]


@pytest.mark.parametrize(
    "rows",
    [
        [(2, 7, 0, 0), (3, 7, 700, 800)],  # later work of the stream has times
        [(2, 7, 700, 650)],
        [(9, 7, 0, 0)],  # launched after the error, so in another context
    ],
)
def test_other_impossible_times_were_not_lost_with_a_context(build, rows):
    _wait(build, 5, "cuCtxSynchronize", 4, return_value=700)
    ledger = _activities(build, *rows)
    assert (ledger.lost_with_context, ledger.invalid_timestamps) == (0, 1)


def test_an_error_that_passes_loses_no_context(build):
    _wait(build, 5, "cuCtxSynchronize", 4, return_value=2)
    assert _activities(build, (2, 7, 0, 0)).losses() == [NO_TIME]


def test_the_recorder_looks_for_the_errors_that_have_names(root):
    text = (root / "native" / "capture" / "launch_watch.cpp").read_text()
    codes = re.search(r"kSticky = \{(.*?)\};", text, re.DOTALL)[1]
    assert [int(code) for code in re.findall(r"^ *(\d+),", codes, re.MULTILINE)] == list(STICKY_ERRORS)


def test_unfinished_work_beside_lost_times(build):
    ledger = _activities(build, (1, 7, 500, 0), (2, 7, 700, 800), (3, 8, 900, 0))
    assert (ledger.unfinished, ledger.invalid_timestamps) == (1, 2)
    assert ledger.losses() == [
        "1 activity was still running or waiting when the recording ended: no end is known",
        NO_TIME,
    ]


def test_our_correlation_without_its_annotation_is_counted(build):
    build.raw("external_correlations", correlation_id=1, external_id=5, external_kind=5)
    assert build.recording().ledger.correlations_unmatched == 1


@pytest.mark.parametrize(
    "name", ["records_dropped", "buffers_declined", "buffers_outstanding", "bytes_unparsed", "records_unknown_kind"]
)
def test_what_the_source_lost_is_a_loss_with_its_count(build, name):
    build.counters[name] = 4711
    ledger = build.recording().ledger
    assert getattr(ledger, name) == 4711
    assert not ledger.complete
    assert len(ledger.losses()) == 1
    assert "4711" in ledger.losses()[0]


def test_what_only_the_source_counts_is_kept(build):
    build.counters.update(bytes_mapped=16, buffers_requested=1)
    ledger = build.recording().ledger
    assert dict(ledger.source_counters) == {"bytes_mapped": 16}
    assert ledger.as_dict()["bytes_mapped"] == 16
    assert ledger.losses() == ["nothing was recorded: the traced process had no activity of the recorded kinds"]


def test_a_step_in_which_nothing_happened_is_not_complete(build):
    ledger = build.recording().ledger
    assert (ledger.complete, ledger.nothing_recorded, ledger.untraced) == (False, 1, 0)
    assert ledger.record_losses() == []
    build.launch(1, 10).kernel("k", 20, correlation_id=1)
    assert build.recording().ledger.losses() == []


@pytest.mark.parametrize("suffix", ["gpurec", "json", "pb"])
def test_a_part_of_a_step_in_which_nothing_happened_says_so_when_it_is_read_back(build, tmp_path, suffix):
    build.environment["cupti_api_version"] = 130000
    build.annotation("layer", 10, 20, 1).annotation("later", 500, 20, 2)
    part = build.recording().between(build.clock["cupti_start_ns"], build.clock["cupti_start_ns"] + 100)
    assert (part.ledger.nothing_recorded, part.counters["rows_cut"]) == (1, 1)
    part.save(tmp_path / f"part.{suffix}")
    read = collector.load(tmp_path / f"part.{suffix}").recording
    assert read.ledger.losses() == part.ledger.losses()
    later = read.between(read.clock.cupti_start_ns, read.clock.cupti_start_ns + 5)
    assert later.ledger.losses() == part.ledger.losses()


@pytest.mark.simulator
@pytest.mark.parametrize("suffix", ["gpurec", "json", "pb"])
def test_annotations_alone_are_no_activity(tmp_path, suffix):
    """The work that was to be traced may run in another process, or its kind is not enabled."""
    with SimulatedGpu() as gpu:
        with collector.trace(tmp_path / f"step.{suffix}", nvtx=False) as step, collector.annotate("layer1/conv"):
            pass
        kinds = ["memcpys", "runtime_api", "external_correlations"]
        with collector.trace(kinds=kinds) as other, collector.annotate("layer1/conv"):
            gpu.launch("kernel")
    for each in (step, collector.load(tmp_path / f"step.{suffix}")):
        assert (each.ledger.complete, each.ledger.nothing_recorded) == (False, 1)
        assert len(each.recording.annotations) == 1
        assert "nothing was recorded" in each.summary()
    assert len(other.recording.api_calls) == 1
    assert other.ledger.nothing_recorded == 0


def test_that_nothing_was_traced_is_the_first_loss(build):
    build.counters.update(untraced=1, records_dropped=3)
    losses = build.recording().ledger.losses()
    assert losses[0] == "nothing was traced"
    assert len(losses) == 2


def test_a_ledger_survives_its_dict():
    ledger = Ledger(launches_seen=3, records_dropped=2, source_counters={"b": 1, "a": 2})
    assert Ledger.from_dict(ledger.as_dict()) == ledger
    assert list(ledger.as_dict())[-2:] == ["a", "b"]


def test_a_ledger_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ledger().kernels = 1


NO_RECORD_LOST = {
    "nothing_recorded",
    "graphs_before_trace",
    "graphs_uncertain",
    "graph_updates_unseen",
    "graphs_perhaps_updated",
}


@pytest.mark.parametrize("figure", LOSSES)
def test_each_loss_has_one_line_and_is_one_of_records_unless_only_names_are_lost(figure):
    ledger = Ledger.from_dict({figure: 3})
    (line,) = ledger.losses()
    assert ledger.record_losses() == ([] if figure in NO_RECORD_LOST else [line])
    assert not ledger.complete
