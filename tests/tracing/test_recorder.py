"""The flight recorder: what went before is written out when something goes wrong, and the program goes on."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import collector
from collector.errors import CollectorWarning, NotTracedError, OutputError, SessionActiveError, UnknownFormatError
from collector.launching.process_journals import traced_processes
from collector.options import KINDS
from collector.profiler import ProfilerHook
from collector.recording.journal_segments import segments_of
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from collector.tracing.annotate import is_recording
from collector.tracing.recorder import Recorder, open_recorder
from collector.tracing.recorder_ring import Keep, RecorderSource, Ring

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.simulator

ACTIVITY_BUFFER_REQUEST = 458752
"""The kind of overhead."""


@pytest.fixture
def gpu():
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}


def waited_for(recorder: Recorder, count: int = 1) -> None:
    """Until there are that many dumps; the test's time limit ends the wait."""
    while len(recorder.dumps) < count:
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("text", "seconds", "num_bytes"),
    [("30s", 30, 0), ("1.5 min", 90, 0), ("2h", 7200, 0), ("512MB", 0, 512_000_000), ("1GiB", 0, 1 << 30)],
)
def test_what_is_kept(text, seconds, num_bytes):
    assert Keep.of(text) == Keep(seconds, num_bytes)


def test_a_number_without_a_unit_is_answered_with_units():
    with pytest.raises(
        ValueError, match="'30' is 30 bytes, and at least 64 KiB are kept: write a time, such as 30s, or"
    ):
        Keep.of("30")


def test_a_name_of_many_megabytes_takes_the_place_of_no_records(gpu, tmp_path):
    with collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        gpu.launch("before")
        with collector.annotate("x" * 20_000_000):
            gpu.launch("inside")
        gpu.synchronize()
        dump = recorder.dump()
    recording = Recording.load(dump.journal)
    assert recording.kernels.names() == ["before", "inside"]
    assert recording.annotations_of(recording.kernels) == ["", "x" * 4093 + "…"]


@pytest.mark.parametrize("text", ["", "soon", "0s", "10", "-5s", "3 parsecs"])
def test_what_cannot_be_kept(text):
    with pytest.raises(ValueError, match="keep="):
        Keep.of(text)


@pytest.mark.parametrize("folder", ["file", "file/dumps"])
def test_a_place_that_can_have_no_dumps_is_reported_at_the_begin(gpu, tmp_path, monkeypatch, folder):
    """A dump after an error would be lost."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    reason = f"cannot write {tmp_path / folder}: {tmp_path / 'file'} is not a folder"
    with pytest.raises(OutputError, match=reason):
        collector.record(folder=folder, strict=True)
    with pytest.warns(CollectorWarning, match=f"dumps are put into collector-dumps: {reason}"):
        recorder = collector.record(folder=folder)
    with recorder:
        assert repr(recorder) == f"<Recorder of 30 s, dumps in {tmp_path / 'collector-dumps'}>"
        gpu.launch("kernel")
        gpu.synchronize()
        dump = recorder.dump()
    assert dump.path.parent == tmp_path / "collector-dumps"
    assert len(collector.load(dump.path).kernels) == 1
    assert repr(recorder) == f"<Recorder of 30 s, dumps in {tmp_path / 'collector-dumps'}: ended>"


@pytest.mark.parametrize("keep", [30, -5, None, b"30s"])
def test_what_is_kept_is_text(keep):
    with pytest.raises(TypeError, match="keep takes text such as '30s' or '512MB', not"):
        collector.record(keep=keep)


@pytest.mark.parametrize("hang", ["5s", True, []])
def test_a_time_that_counts_as_a_hang_is_a_number(hang):
    with pytest.raises(TypeError, match="hang takes a number of seconds or None"):
        collector.record(hang=hang)


@pytest.mark.medium
def test_a_dump_has_what_went_before_and_the_recorder_goes_on(gpu, tmp_path):
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder:
        assert open_recorder() is recorder
        with collector.annotate("outer"):
            for _ in range(100):
                gpu.launch("kernel")
            gpu.synchronize()
            first = recorder.dump()
            for _ in range(50):
                gpu.launch("later")
            gpu.synchronize()
        second = recorder.dump(tmp_path / "second.json", reason="a reason")
        assert second.wait() == tmp_path / "second.json"
    found = Recording.load(first.journal)
    assert [kernel.name for kernel in found.kernels] == ["kernel"] * 100
    assert set(found.annotations_of(found.kernels)) == {"outer"}
    assert found.ledger.losses() == []
    assert found.environment["thread_names"][os.getpid()]
    assert len(collector.load(second.path).recording.kernels) == 150
    assert len(Recording.load(second.journal).kernels) == 150
    assert recorder.dumps == [first, second]
    assert second.reason == "a reason"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dumps", "second.json"]  # the ring is gone
    assert open_recorder() is None


class CutTooLate:
    """The native module, of which no mark waits for what the journal lacks."""

    def __init__(self, native) -> None:
        self.native = native

    def __getattr__(self, name):
        return getattr(self.native, name)

    def mark(self, wanted):
        marks = (self.native.mark(wanted, timeout_ms=0) for _ in range(1000))
        return next(mark for mark in marks if not mark["is_up_to_date"])


def test_a_dump_whose_latest_records_could_not_be_written_in_time_says_so(gpu, tmp_path, monkeypatch):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("kernel")
        gpu.synchronize()
        recorder.dump()
        native = recorder._source._native
        monkeypatch.setattr(recorder._source, "_native", CutTooLate(native))
        with pytest.warns(CollectorWarning, match="the latest records are not in .*: they were not written in time"):
            late = recorder.dump()
        monkeypatch.setattr(recorder._source, "_native", native)
        recording = Recording.load(recorder.dump().journal)
    assert late is not None
    assert [kernel.name for kernel in recording.kernels] == ["kernel"]


def test_a_ring_keeps_the_latest_and_counts_the_rest(gpu, tmp_path):
    with collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        for piece in range(60):
            for number in range(200):
                gpu.launch("kernel", duration_ns=1000 + 37 * (number * piece % 97))
            gpu.synchronize()
            recorder._source.cut()
        recording = Recording.load(recorder.dump().journal)
    assert 0 < len(recording.kernels) < 12_000
    assert recording.ledger.losses() == []
    assert recording.ledger.rows_forgotten > 0
    assert int(recording.kernels.correlation_id.max()) >= 12_000


def test_the_segments_that_a_ring_kept_have_the_cpu_time_of_their_own_records(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        for _ in range(3):
            for _ in range(500):
                gpu.launch("kernel")
            gpu.synchronize()
            recorder._source.cut()
        journal = recorder.dump().journal
    whole = Recording.load(journal).ledger
    first, *_ = segments_of(journal)
    shutil.move(first, tmp_path / "first.journal")
    parts = [Recording.load(path).ledger for path in (tmp_path / "first.journal", journal)]
    assert parts[1].rows_forgotten > 0
    for figure in ("decode_cpu_ns", "records_decoded"):
        own = [getattr(each, figure) for each in parts]
        assert min(own) > 0
        assert sum(own) == getattr(whole, figure)


@pytest.mark.medium
def test_a_ring_smaller_than_one_delivery_of_records_keeps_the_latest_delivery(tmp_path):
    with SimulatedGpu(real_time=True) as gpu, collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        for number in range(1, 40_001):
            gpu.launch("kernel", grid=(number, 1, 1), duration_ns=1000)
        gpu.synchronize()
        dumped = Recording.load(recorder.dump().journal)
        again = Recording.load(recorder.dump().journal)  # no record came in between, but the segment of the first dump
    assert dumped.kernels.grid_x.max() == again.kernels.grid_x.max() == 40_000
    assert dumped.ledger.losses() == []


@pytest.mark.medium
@pytest.mark.parametrize("later", ["an overhead", "calls"])
def test_the_latest_work_stays_in_a_ring_of_which_it_is_the_most(tmp_path, later):
    """On an H200 the overheads of the last flush pushed all kernels out of a ring of 64 KB."""
    with SimulatedGpu(real_time=True) as gpu, collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        for number in range(1, 40_001):
            gpu.launch("kernel", grid=(number, 1, 1), duration_ns=1000)
        gpu.synchronize()
        recorder._source.cut()
        if later == "calls":
            for _ in range(100):
                gpu.api_call(driver="cuStreamQuery")
        else:
            gpu.overhead(ACTIVITY_BUFFER_REQUEST, 1000)
        recorder._source.cut()
        dumped = Recording.load(recorder.dump().journal)
        for _ in range(30):  # without records
            recorder._source.cut()
        idle = Recording.load(recorder.dump().journal)
        for _ in range(30):
            for _ in range(3_000):
                gpu.api_call(driver="cuStreamQuery")
            recorder._source.cut()
        for _ in range(30):  # without records
            recorder._source.cut()
        segments = tmp_path.glob(".collector-ring-*/ring.journal/*.journal")
        num_bytes = sum(path.stat().st_size for path in segments)
        polled = Recording.load(recorder.dump().journal)
    assert dumped.kernels.grid_x.max() == idle.kernels.grid_x.max() == 40_000
    assert dumped.ledger.losses() == idle.ledger.losses() == polled.ledger.losses() == []
    assert 0 < num_bytes < 200_000


@pytest.mark.medium
def test_an_annotation_that_ended_without_further_work_keeps_its_end(tmp_path):
    """Its end is in a segment without rows, which is followed by others without rows."""
    with SimulatedGpu(real_time=True) as gpu, collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        with collector.annotate("short"):
            for _ in range(300):
                gpu.launch("kernel", duration_ns=1000)
            gpu.synchronize()
            recorder._source.cut()
            *_, with_end = sorted(tmp_path.glob(".collector-ring-*/ring.journal/*.journal"))
        first = Recording.load(recorder.dump().journal)
        for _ in range(30):  # without records
            recorder._source.cut()
        assert with_end.exists()
        idle = Recording.load(recorder.dump().journal)
    assert len(idle.kernels) == len(first.kernels) == 300
    assert idle.annotations.end_ns.tolist() == first.annotations.end_ns.tolist()
    assert idle.annotations.start_ns.tolist() == first.annotations.start_ns.tolist()


def bytes_written() -> int:
    return int(re.search(r"wchar: (\d+)", Path("/proc/self/io").read_text())[1])  # type: ignore[index]


@pytest.mark.medium
def test_annotations_whose_names_never_repeat_fit_into_a_ring(gpu, tmp_path):
    """The names of rows that were removed go with them: neither the files nor what is written for them grow."""
    written = []
    with collector.record(keep="256KiB", folder=tmp_path, strict=True) as recorder, collector.annotate("training"):
        for part in range(4):
            before = bytes_written()
            for number in range(part * 5000, part * 5000 + 5000):
                with collector.annotate(f"step {number} of the loop"):
                    gpu.launch("kernel", grid=(number + 1, 1, 1), duration_ns=100)
            gpu.synchronize()
            recorder._source.cut()
            written.append(bytes_written() - before)
            segments = tmp_path.glob(".collector-ring-*/ring.journal/*.journal")
            assert sum(path.stat().st_size for path in segments) <= 256 << 10
        recording = Recording.load(recorder.dump().journal)
    assert written[3] < 1.5 * written[0] < 3_000_000
    # Where records are decoded late, a segment of this size cannot tell the names of all of them.
    unmatched = recording.ledger.correlations_unmatched
    assert len(recording.ledger.losses()) == (unmatched > 0)
    named = [kernel for kernel in recording.kernels if kernel.annotation]
    # The link of the first call to its annotation may be in the segment before, which was removed.
    assert len(named) + 1 >= len(recording.kernels) - recording.ledger.launches_cut - unmatched
    assert len(recording.kernels) > 0
    assert [kernel.annotation for kernel in named] == [
        f"training/step {kernel.grid_x - 1} of the loop" for kernel in named
    ]
    assert len(set(recording.strings)) == len(recording.strings)


def test_kernels_whose_calls_were_all_removed_are_cut(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("before")
        gpu.synchronize()
        recorder._source.cut()
        gpu.inject("lost_api_record", count=-1)  # as if they were in the segment before
        for _ in range(3):
            gpu.launch("kernel")
        gpu.advance(1_000_000)
        gpu.clear_faults()
        dump = recorder.dump()
    first, *_ = segments_of(dump.journal)
    first.unlink()
    recording = Recording.load(dump.journal)
    assert (len(recording.kernels), len(recording.api_calls)) == (3, 0)
    assert recording.ledger.launches_cut == 3
    assert recording.ledger.losses() == []


def decoded_in_a_later_segment(recorder, gpu):
    """The dump of a ring that closes its segment before the launches so far are decoded, and many more after that."""
    recorder._source.cut()
    gpu.synchronize()
    for _ in range(20):
        recorder._source.cut()
    return Recording.load(recorder.dump().journal)


@pytest.mark.medium
def test_a_time_before_the_recording_does_not_lengthen_a_dump(gpu, tmp_path):
    """A dump whose first segments are removed begins with its earliest row."""
    with collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        for _ in range(3000):
            gpu.launch("old")
        gpu.synchronize()
        recorder._source.cut()
        gpu.inject("shifted_timestamps", value=-3_600_000_000_000)
        gpu.launch("shifted")
        gpu.launch("kernel")
        recording = decoded_in_a_later_segment(recorder, gpu)
    assert recording.ledger.rows_forgotten > 0
    assert recording.ledger.early == 1
    assert "shifted" not in recording.kernels.names()
    assert recording.clock.window_ns < 3_600_000_000_000


@pytest.mark.medium
def test_names_that_a_segment_cannot_repeat_are_a_loss(gpu, tmp_path):
    with collector.record(keep="256KiB", folder=tmp_path, strict=True) as recorder, collector.annotate("training"):
        for number in range(200):
            with collector.annotate(f"step {number} " + "of the loop " * 100):
                gpu.launch("kernel")
        recording = decoded_in_a_later_segment(recorder, gpu)
    unnamed = sum(not kernel.annotation for kernel in recording.kernels)
    unmatched = recording.ledger.correlations_unmatched
    assert 0 < unmatched <= unnamed <= unmatched + recording.ledger.launches_cut
    assert len(recording.ledger.losses()) == 1


@pytest.mark.medium
def test_a_time_in_the_future_costs_no_name(gpu, tmp_path):
    """A segment tells the annotations again that launches to come may be in, by the times of those decoded so far."""
    with collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        gpu.inject("shifted_timestamps")  # by an hour
        gpu.launch("shifted")
        gpu.synchronize()
        for number in range(3):
            with collector.annotate(f"step {number}"):
                gpu.launch("kernel")
        recording = decoded_in_a_later_segment(recorder, gpu)
    assert recording.kernels.annotations() == ["step 0", "step 1", "step 2"]
    assert recording.ledger.correlations_unmatched == 0


@pytest.mark.medium
def test_a_ring_whose_records_are_all_too_old_does_not_say_that_nothing_happened(gpu, tmp_path):
    with collector.record(keep="1s", folder=tmp_path, strict=True) as recorder:
        gpu.launch("old")
        gpu.synchronize()
        recorder._source.cut()
        deadline = time.monotonic() + 60
        while kernels_of(recorder) and time.monotonic() < deadline:
            time.sleep(0.3)
        dump = recorder.dump()
        ledger = Recording.load(dump.journal).ledger
    assert ledger.rows_forgotten > 0
    assert ledger.losses() == []
    assert "likely causes" not in collector.load(dump.journal).summary()
    # `collector run` names such a process: it used the GPU.
    (tmp_path / "run").mkdir()
    dump.journal.rename(tmp_path / "run" / f"here-{os.getpid()}.journal")
    traced = traced_processes(tmp_path / "run")
    assert traced.found == []
    assert traced.lost == [
        f"nothing is left of process {os.getpid()}: all {ledger.rows_forgotten} rows were removed to keep the size"
    ]


@pytest.mark.medium
def test_a_ring_of_time_forgets_what_is_old(gpu, tmp_path):
    with collector.record(keep="1s", folder=tmp_path, strict=True) as recorder:
        gpu.launch("old")
        gpu.synchronize()
        recorder._source.cut()
        deadline = time.monotonic() + 60
        while "old" in kernels_of(recorder) and time.monotonic() < deadline:
            time.sleep(0.3)
            gpu.launch("new")
            gpu.synchronize()
        assert kernels_of(recorder) == {"new"}


def kernels_of(recorder: Recorder) -> set[str]:
    dump = recorder.dump()
    assert dump is not None
    return {kernel.name for kernel in Recording.load(dump.journal).kernels}


def test_a_trace_is_a_part_of_the_recording(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("before")
        gpu.synchronize()
        with collector.trace(strict=True) as step, collector.annotate("inside"):
            gpu.launch("traced")
        gpu.launch("after")
        gpu.synchronize()
        assert [kernel.name for kernel in step.kernels] == ["traced"]
        assert step.recording.annotations_of(step.recording.kernels) == ["inside"]
        assert step.ledger.complete
        assert kernels_of(recorder) == {"before", "traced", "after"}
    with collector.trace(strict=True) as step:
        gpu.launch("alone")
    assert len(step.kernels) == 1


@pytest.mark.parametrize("is_written", [False, True], ids=["calls in buffers", "calls in the journal"])
@pytest.mark.parametrize("num_inside", [0, 3])
def test_kernels_that_were_launched_before_a_trace_are_none_of_it(gpu, tmp_path, is_written, num_inside):
    """They run in it, as nothing waited for them."""
    with collector.record(folder=tmp_path, strict=True) as recorder:
        for _ in range(20):
            gpu.launch("before", duration_ns=20_000_000)
        if is_written:
            recorder._source.cut()
        with collector.trace(strict=True) as step:
            for _ in range(num_inside):
                gpu.launch("inside")
        found = Recording.load(recorder.dump().journal)
    assert [kernel.name for kernel in step.kernels] == ["inside"] * num_inside
    assert step.ledger.launches_seen == num_inside
    assert step.ledger.complete == bool(num_inside)  # an empty step says that nothing was recorded
    assert len(found.kernels) == 20 + num_inside


def test_a_kernel_that_runs_when_a_trace_ends_is_part_of_it(tmp_path):
    """The trace does not wait for it, but its record comes while the journal is completed."""
    with (
        SimulatedGpu(real_time=True) as gpu,
        collector.record(folder=tmp_path, strict=True),
        collector.trace(strict=True, synchronize=False) as step,
    ):
        gpu.launch("running", duration_ns=20_000_000)
    assert [kernel.name for kernel in step.kernels] == ["running"]
    assert step.ledger.losses() == []
    assert step.recording.clock.window_ns >= 20_000_000


def test_dumps_of_successive_recorders_are_counted_on(gpu, tmp_path):
    """Also where their journals were removed, because the files are enough."""
    for _ in range(3):
        with collector.record(folder=tmp_path, suffix=".json", strict=True) as recorder:
            gpu.launch("a")
            gpu.synchronize()
            dump = recorder.dump(reason="slow step")
        dump.wait()
    shutil.rmtree(dump.journal)
    with collector.record(folder=tmp_path, suffix=".json", strict=True) as recorder:
        recorder.dump(reason="slow step").wait()
    dumps = {f"slow-step-{os.getpid()}-{number}" for number in range(1, 5)}
    assert {path.stem for path in tmp_path.glob("*.json")} == dumps
    assert {path.stem for path in tmp_path.glob("*.journal")} == dumps - {f"slow-step-{os.getpid()}-3"}


def test_a_step_of_a_recorder_has_no_stacks_and_says_so(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True):
        step = collector.trace(stacks=True)
        with pytest.warns(collector.CollectorWarning, match="stacks of annotations are not recorded: .* stack=True"):
            step.start()
        with collector.annotate("without"):
            gpu.launch("a")
        with collector.annotate("with", stack=True):
            gpu.launch("b")
        step.stop()
        strict = collector.trace(stacks=True, strict=True)
        with pytest.raises(collector.NotTracedError, match="is recorded already"):
            strict.start()
    assert step.kernels.names() == ["a", "b"]
    assert [bool(details.stack) for details in step.recording.details] == [True]


def test_a_step_of_a_recorder_writes_no_journal_and_says_so(gpu, tmp_path):
    """The program would look for it afterwards."""
    journal = tmp_path / "run.journal"
    with collector.record(folder=tmp_path / "dumps", strict=True):
        with (
            pytest.warns(
                collector.CollectorWarning,
                match=r"run\.journal is not written: this process is recorded already, .* leave stream=True out",
            ),
            collector.trace(journal=journal, stream=True) as step,
        ):
            gpu.launch("a")
        strict = collector.trace(journal=journal, stream=True, strict=True)
        with pytest.raises(collector.NotTracedError, match="is recorded already"):
            strict.start()
        with collector.trace(journal=journal, strict=True) as kept_by_the_recorder:
            gpu.launch("b")
    assert (step.kernels.names(), kept_by_the_recorder.kernels.names()) == (["a"], ["b"])
    assert not journal.exists()


def test_a_time_in_the_future_does_not_lengthen_a_trace(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True), collector.trace(strict=True) as step:
        gpu.inject("shifted_timestamps")  # by an hour
        gpu.launch("shifted")
        gpu.launch("kernel")
        gpu.synchronize()
    assert [kernel.name for kernel in step.kernels] == ["kernel"]
    assert step.ledger.late == 1
    assert step.recording.clock.window_ns < 3_600_000_000_000


def test_events_and_annotations_before_a_trace_are_none_of_it(gpu, tmp_path):
    """An event has no time of its own; the annotation ends at the moment in which the trace begins."""
    kinds = (*KINDS, "cuda_events")
    with collector.record(folder=tmp_path, kinds=kinds, strict=True):
        gpu.record_event(stream=8)
        with collector.annotate("before"):
            gpu.advance(10)
        with collector.trace(strict=True) as step:
            inside = gpu.record_event(stream=9)
            with collector.annotate("inside"):
                gpu.launch("kernel")
    assert step.recording.cuda_events.event_id.tolist() == [inside]
    assert step.recording.annotations.names() == ["inside"]


@pytest.mark.medium
def test_calls_of_another_thread_before_a_trace_are_none_of_it(gpu, tmp_path):
    """Its last call before the trace is long past; the calls since are those of the thread that traces."""
    with collector.record(folder=tmp_path, strict=True) as recorder:
        thread = threading.Thread(target=lambda: [gpu.launch("before", duration_ns=20_000_000) for _ in range(10)])
        thread.start()
        thread.join()
        recorder._source.cut()
        for number in range(3):
            with collector.trace(strict=True) as step:
                gpu.launch(f"inside {number}", stream=5)
            assert step.kernels.names() == [f"inside {number}"]


def test_without_calls_the_start_decides_what_is_of_a_trace(gpu, tmp_path):
    with collector.record(folder=tmp_path, kinds=("kernels",), strict=True):
        for _ in range(5):
            gpu.launch("before", duration_ns=50_000_000)
        with collector.trace(strict=True) as step:
            gpu.launch("inside")
    names = [kernel.name for kernel in step.kernels]
    assert names[-1] == "inside"
    assert set(names[:-1]) == {"before"}


@pytest.mark.medium
def test_a_trace_does_not_wait_for_a_flush_of_the_recording(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True):
        gpu.inject("held_flush")
        while not {row.name: row.struck for row in gpu.faults()}["held_flush"]:  # the recording's own, twice a second
            time.sleep(0.01)
        with collector.trace(strict=True) as step:
            gpu.clear_faults()
            gpu.launch("inside")
    assert [kernel.name for kernel in step.kernels] == ["inside"]


def test_steps_of_a_profiler_hook_are_windows_of_the_recording(gpu, tmp_path):
    schedule = collector.schedule(wait=1, warmup=1, active=1, repeat=2)
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder:
        hook = ProfilerHook(schedule=schedule, output_dir=tmp_path)
        for number in range(8):
            hook.before_step(number)
            for _ in range(number + 1):
                gpu.launch(f"step{number}")
            hook.after_step(number)
        hook.close()
        gpu.synchronize()
        assert kernels_of(recorder) == {f"step{number}" for number in range(8)}
    for number in (2, 5):
        names = [kernel.name for kernel in collector.load(tmp_path / f"timeline-{number}.json").kernels]
        assert names == [f"step{number}"] * (number + 1)


def test_a_trace_whose_recording_has_lost_its_files_says_so(gpu, tmp_path):
    recorder = collector.record(folder=tmp_path, strict=True)
    shutil.rmtree(recorder._ring.path)
    lost = pytest.raises(NotTracedError, match=r"the journal of this process, .*, cannot be read \(No such file")
    with lost, collector.trace(strict=True):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing could be written, either
        recorder.stop()


def test_a_second_recorder_does_nothing(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        with pytest.warns(CollectorWarning, match="nothing is recorded: .*has a recorder already") as warned:
            second = collector.record(folder=tmp_path)
        assert len(warned) == 1
        assert second.unavailable
        with pytest.warns(CollectorWarning, match="nothing is dumped: .*has a recorder already"):
            assert second.dump() is None
        second.stop()
        with pytest.raises(SessionActiveError):
            collector.record(folder=tmp_path, strict=True)
        gpu.launch("kernel")
        gpu.synchronize()
        assert kernels_of(recorder) == {"kernel"}
    with collector.record(folder=tmp_path, strict=True):
        pass


def test_a_recorder_in_a_trace_gives_one_warning(gpu, tmp_path):
    with collector.trace(strict=True) as step:
        with pytest.warns(CollectorWarning, match="nothing is recorded: a session is already open"):
            recorder = collector.record(folder=tmp_path)
        gpu.launch("kernel")
    assert len(step.kernels) == 1
    assert not recorder.is_running
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_dumps_at_one_time(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("kernel")
        gpu.synchronize()
        stop = threading.Event()

        def launch() -> None:
            while not stop.is_set():
                gpu.launch("more")

        threads = [threading.Thread(target=launch)]
        threads += [threading.Thread(target=recorder.dump) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads[1:]:
            thread.join()
        stop.set()
        threads[0].join()
        gpu.synchronize()
    assert len({dump.journal for dump in recorder.dumps}) == 6
    for dump in recorder.dumps:
        recording = Recording.load(dump.journal)
        assert "kernel" in {kernel.name for kernel in recording.kernels}
        assert recording.ledger.losses() == []


@pytest.fixture
def signalled(gpu, tmp_path, monkeypatch):
    """Record, dump and end, and call ``handler`` from a signal handler that interrupts a method meanwhile."""

    def run(owner: type, method: str, handler: Callable[[Recorder], object]) -> Recorder:
        recorder = collector.record(folder=tmp_path, strict=True)
        gpu.launch("kernel")
        gpu.synchronize()
        interrupted = getattr(owner, method)

        def interrupt(*args: object, **kwargs: object) -> object:
            signal.raise_signal(signal.SIGUSR1)
            return interrupted(*args, **kwargs)

        before = signal.signal(signal.SIGUSR1, lambda *_: handler(recorder))
        try:
            with monkeypatch.context() as patch:
                patch.setattr(owner, method, interrupt)
                recorder.dump(reason="program")
                recorder.stop()
        finally:
            signal.signal(signal.SIGUSR1, before)
        return recorder

    return run


@pytest.mark.parametrize(("owner", "method"), [(Ring, "copy"), (RecorderSource, "stop")], ids=["a dump", "the end"])
def test_a_signal_handler_that_dumps_is_answered(owner, method, signalled, gpu, tmp_path):
    with pytest.warns(CollectorWarning, match="nothing is dumped: this signal handler interrupts a dump, or the end"):
        recorder = signalled(owner, method, Recorder.dump)
    assert [dump.reason for dump in recorder.dumps] == ["program"]
    assert [path.name for path in tmp_path.iterdir()] == [recorder.dumps[0].journal.name]


@pytest.mark.parametrize(("owner", "method"), [(Ring, "copy"), (RecorderSource, "stop")], ids=["a dump", "the end"])
@pytest.mark.parametrize("exits", [False, True])
def test_a_signal_handler_that_ends_the_recorder_is_obeyed(owner, method, exits, signalled, gpu, tmp_path):
    def end(recorder: Recorder) -> None:
        recorder.stop()
        if exits:
            sys.exit()

    with pytest.raises(SystemExit) if exits else contextlib.nullcontext():
        signalled(owner, method, end)
    if exits and method == "stop":
        (interrupted,) = [open_recorder()]
        interrupted.stop()  # as the exit of the interpreter does
    assert open_recorder() is None
    with collector.record(folder=tmp_path, strict=True) as other:
        gpu.launch("other")
        gpu.synchronize()
        assert kernels_of(other) == {"other"}


def test_a_trace_whose_recorder_is_ended_inside_of_it_says_so(gpu, tmp_path):
    recorder = collector.record(folder=tmp_path, strict=True)
    step = collector.trace().start()
    gpu.launch("kernel")
    recorder.stop()
    with pytest.warns(
        CollectorWarning, match=r"the recording of this process ended inside the step\. End the step first"
    ):
        step.stop()
    assert "ended inside the step" in step.unavailable


def test_a_dump_that_waits_for_another_while_the_recorder_ends(gpu, tmp_path, monkeypatch):
    recorder = collector.record(folder=tmp_path, strict=True)
    gpu.launch("kernel")
    is_waiting, lock, found = threading.Event(), recorder._dumping, []

    class Lock:
        def __enter__(self) -> None:
            if threading.current_thread() is dumping:
                is_waiting.set()
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    def dump() -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found.append(recorder.dump())
        found.extend(str(each.message) for each in told)

    monkeypatch.setattr(recorder, "_dumping", Lock())
    dumping = threading.Thread(target=dump)
    with lock:
        dumping.start()
        is_waiting.wait()
        source, recorder._source = recorder._source, None  # as `stop` does in its turn
    dumping.join()
    recorder._source = source
    recorder.stop()
    assert found == [None, "nothing is dumped: the recorder does not run in this process"]
    assert recorder.dumps == []


@contextlib.contextmanager
def no_threads():
    """No thread of the collector can be started."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("collector"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        yield


def test_a_process_that_has_no_more_threads_has_no_recorder(gpu, tmp_path):
    before = sys.excepthook, threading.excepthook
    with no_threads():
        with pytest.warns(CollectorWarning, match=r"nothing is recorded: no thread can be started .* Raise the limit"):
            recorder = collector.record(folder=tmp_path)
        with pytest.raises(NotTracedError, match="no thread can be started"):
            collector.record(folder=tmp_path, strict=True)
    assert "no thread can be started" in recorder.unavailable
    assert not recorder.is_running
    assert (sys.excepthook, threading.excepthook) == before
    assert list(tmp_path.iterdir()) == []
    assert not is_recording()
    with collector.trace(strict=True) as step:
        gpu.launch("kernel")
    assert len(step.kernels) == 1
    with collector.record(folder=tmp_path, strict=True):
        pass


def test_a_file_that_no_thread_can_wait_for_leaves_the_dump(gpu, tmp_path):
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder:
        gpu.launch("kernel")
        gpu.synchronize()
        expected = r"dump.json cannot be written: no thread can be started .*; the dump is in "
        with no_threads(), pytest.warns(CollectorWarning, match=expected):
            dump = recorder.dump(tmp_path / "dump.json")
    assert dump.wait() == dump.journal
    assert [kernel.name for kernel in Recording.load(dump.journal).kernels] == ["kernel"]


def test_a_dump_of_an_unknown_format(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder, pytest.raises(UnknownFormatError):
        recorder.dump(tmp_path / "dump.nonsense")


@pytest.mark.medium
@pytest.mark.parametrize("folder", ["file", "missing/file"])
def test_a_folder_that_cannot_be_made_is_one_warning(gpu, tmp_path, folder):
    with collector.record(folder=tmp_path / folder / "dumps", strict=True) as recorder:
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        (tmp_path / folder).write_text("in the way")
        gpu.launch("kernel")
        with pytest.warns(CollectorWarning, match=f"nothing is dumped: {tmp_path / folder}") as warned:
            assert recorder.dump() is None
    assert len(warned) == 1


@pytest.mark.medium
def test_a_dump_by_itself_leaves_the_warning_filters_to_the_program(gpu, tmp_path, monkeypatch):
    """It is made on a thread of the recorder, and the filters are those of the whole process."""
    before = list(warnings.filters)
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("kernel")
        has_begun, goes_on, make = threading.Event(), threading.Event(), recorder._dump

        def slow(*arguments, **options):
            has_begun.set()
            goes_on.wait()
            return make(*arguments, **options)

        monkeypatch.setattr(recorder, "_dump", slow)
        thread = threading.Thread(target=recorder.dump_after, args=("error",))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            thread.start()
            has_begun.wait()
        goes_on.set()
        thread.join()
        assert len(recorder.dumps) == 1
    assert list(warnings.filters) == before


@pytest.mark.parametrize("is_error", [False, True])
def test_a_dump_by_itself_that_fails_is_one_line(gpu, tmp_path, capsys, is_error):
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder, warnings.catch_warnings():
        warnings.simplefilter("error" if is_error else "ignore")
        (tmp_path / "dumps").write_text("in the way")
        gpu.launch("kernel")
        gpu.synchronize()
        assert recorder.dump_after("error") is None
        told = capsys.readouterr().err
        warnings.simplefilter("ignore")
        recorder.stop()
    assert told == f"collector: nothing is dumped: {tmp_path / 'dumps'}: File exists\n"


def test_records_stay_where_a_dump_by_itself_fails(gpu, tmp_path):
    recorder = collector.record(folder=tmp_path / "dumps", strict=True)
    (tmp_path / "dumps").write_text("in the way")
    gpu.launch("kernel")
    gpu.synchronize()
    assert recorder.dump_after("error") is None
    with pytest.warns(CollectorWarning) as warned:
        recorder.stop()
    (ring,) = tmp_path.glob(".collector-ring-*/ring.journal")
    assert [str(each.message) for each in warned] == [
        f"no dump could be made of the recorder's records, which stay in {ring}"
    ]
    assert [kernel.name for kernel in Recording.load(ring).kernels] == ["kernel"]


def test_records_do_not_stay_after_a_later_dump(gpu, tmp_path):
    recorder = collector.record(folder=tmp_path / "dumps", strict=True)
    (tmp_path / "dumps").write_text("in the way")
    gpu.launch("kernel")
    gpu.synchronize()
    assert recorder.dump_after("error") is None
    (tmp_path / "dumps").unlink()
    assert recorder.dump_after("error") is not None
    recorder.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["dumps"]


PROGRAM = """
import os, sys, threading, time
import collector
from collector.testing import SimulatedGpu
gpu = SimulatedGpu().__enter__()
recorder = collector.record(folder=sys.argv[1], hang=0.6, strict=True)
with collector.annotate("step"):
    for _ in range(20):
        gpu.launch("kernel")
    gpu.synchronize()
"""


def run(tmp_path: Path, end: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + end, str(tmp_path)], capture_output=True, text=True, check=False
    )


USE_UP = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
def use_up():
    while True:
        files.append(open("/dev/null"))
"""
"""A program that uses up its file descriptors."""


@pytest.mark.medium
def test_an_error_without_a_free_file_descriptor_keeps_the_records(tmp_path):
    done = run(tmp_path, f"{USE_UP}use_up()")
    assert "OSError: [Errno 24] Too many open files" in done.stderr
    assert f"collector: nothing is dumped: {tmp_path}: Too many open files" in done.stderr
    (ring,) = tmp_path.glob(".collector-ring-*/ring.journal")
    assert f"no dump could be made of the recorder's records, which stay in {ring}" in " ".join(done.stderr.split())
    assert [kernel.name for kernel in Recording.load(ring).kernels] == ["kernel"] * 20


@pytest.mark.medium
@pytest.mark.parametrize("keep", ["100kB", "2s"])
def test_a_recorder_outlives_a_shortage_of_file_descriptors(tmp_path, keep):
    end = f"""{USE_UP}
import contextlib
recorder.stop()
with collector.record({keep!r}, folder=sys.argv[1], strict=True) as recorder:
    with contextlib.suppress(OSError):
        use_up()
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for number in range(500):
            gpu.launch(f"before {{number}}")
        gpu.synchronize()
        gpu.wait_until_idle()
    print(recorder.is_running)
    for file in files:
        file.close()
    for _ in range(20):
        gpu.launch("after")
    gpu.synchronize()
    dump = recorder.dump()
    print(sum(path.stat().st_size for path in dump.journal.iterdir()))
"""
    done = run(tmp_path, end)
    assert done.returncode == 0, done.stderr
    running, size = done.stdout.splitlines()
    assert (running, done.stderr) == ("True", "")
    names = [kernel.name for kernel in only_dump(tmp_path).kernels]
    assert names[-20:] == ["after"] * 20
    assert keep != "100kB" or int(size) < 250_000


def only_dump(folder: Path) -> Recording:
    (journal,) = folder.iterdir()
    return Recording.load(journal)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("raise KeyError('lost')", 1, "uncaught KeyError"),
        ("t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", 0, "uncaught ZeroDivisionError"),
        ("with recorder: raise RuntimeError('lost')", 1, "RuntimeError"),
    ],
)
def test_an_exception_that_is_not_caught(tmp_path, end, status, reason):
    done = run(tmp_path, end)
    assert done.returncode == status, done.stderr
    assert f"collector: {reason}: the last of what the GPU did is in {tmp_path}" in done.stderr
    assert "Traceback" in done.stderr  # the exception is reported as always
    assert [kernel.name for kernel in only_dump(tmp_path).kernels] == ["kernel"] * 20


@pytest.mark.medium
def test_an_end_without_trouble_leaves_nothing(tmp_path):
    done = run(tmp_path, "sys.exit(4)")
    assert (done.returncode, done.stderr) == (4, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_kernel_that_never_ends(tmp_path):
    end = """
gpu.launch("never_ends", duration_ns=3_600_000_000_000)
while not recorder.dumps:
    time.sleep(0.05)
"""
    done = run(tmp_path, end)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("collector: no GPU work ended for 0.6 s although work was launched; running: never_ends. ")
    recording = only_dump(tmp_path)
    assert [kernel.name for kernel in recording.kernels] == ["kernel"] * 20
    assert [kernel.name for kernel in recording.invalid.kernels] == ["never_ends"]
    assert recording.ledger.losses() == [
        "1 activity was still running or waiting when the recording ended: no end is known"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("code", [700, 719])
def test_a_cuda_error_after_which_the_context_is_lost(tmp_path, code):
    end = f"""
gpu.inject("failed_call", value={code})
gpu.launch("failing")
gpu.inject("failed_call", value={code}, count=-1)
while not recorder.dumps:
    gpu.synchronize()
    time.sleep(0.05)
time.sleep(1)
print(len(recorder.dumps))
"""
    done = run(tmp_path, end)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"collector: CUDA error {code} of cu")
    assert f": the last of what the GPU did is in {tmp_path}" in line
    recording = only_dump(tmp_path)
    assert {kernel.name for kernel in recording.kernels} == {"kernel", "failing"}
    assert code in recording.api_calls.return_value.tolist()


@pytest.mark.medium
@pytest.mark.parametrize("ending", ["sys.exit(3)", "raise KeyError('lost')"])
def test_an_error_beside_a_kernel_that_never_ends_is_seen_at_the_end(tmp_path, ending):
    """CUPTI keeps the failed call with the kernel's record, which is never finished in a lost context."""
    end = """
gpu.launch("failing", duration_ns=3_600_000_000_000)
gpu.inject("failed_call", value=700)
gpu.query()
"""
    done = run(tmp_path, end + ending)
    reason = "uncaught KeyError" if "KeyError" in ending else "CUDA error 700 of cuStreamQuery"
    dumped = [line for line in done.stderr.splitlines() if line.startswith("collector: ")]
    assert dumped[0].startswith(f"collector: {reason}: the last of what the GPU did is in {tmp_path}"), done.stderr
    recording = Recording.load(Path(dumped[0].partition(" is in ")[2]))
    assert [kernel.name for kernel in recording.invalid.kernels] == ["failing"]
    assert 700 in recording.api_calls.return_value.tolist()


@pytest.mark.slow
def test_work_that_was_fetched_before_an_error_keeps_its_times(tmp_path):
    """CUPTI gives no times of records that it still holds then, also of work that has ended (H100, 13.0.85)."""
    end = """
time.sleep(1.2)  # CUPTI is asked for what it has twice a second
gpu.launch("ended")
gpu.synchronize()
gpu.inject("failed_kernel", value=700)
gpu.launch("failing")
gpu.synchronize()
"""
    done = run(tmp_path, end)
    assert "collector: CUDA error 700 of cuCtxSynchronize: the last of what the GPU did is in" in done.stderr
    recording = only_dump(tmp_path)
    assert [kernel.name for kernel in recording.kernels] == ["kernel"] * 20
    assert [kernel.name for kernel in recording.invalid.kernels] == ["ended", "failing"]
    (loss,) = recording.ledger.losses()
    assert loss.startswith("2 activities have no times: a CUDA error made their context unusable")


@pytest.mark.slow
def test_an_error_is_seen_at_once_although_cupti_holds_the_call_that_returned_it(tmp_path):
    """The record of the call comes with the failed kernel's, which is never finished: seen on an H100, 13.0.85."""
    end = """
gpu.inject("failed_kernel", value=719)
gpu.launch("failing")
gpu.synchronize()
while not recorder.dumps:
    time.sleep(0.02)
print(recorder.dumps[0].reason)
"""
    done = run(tmp_path, end)
    assert done.stdout in ("CUDA error 719 of cudaDeviceSynchronize\n", "CUDA error 719 of cuCtxSynchronize\n"), (
        done.stderr
    )


@pytest.mark.slow
def test_an_error_that_passes_is_no_trigger(tmp_path):
    end = """
gpu.inject("failed_call", value=2, count=20)  # out of memory
for _ in range(20):
    gpu.launch("kernel")
gpu.synchronize()
time.sleep(1.5)
print(recorder.dumps, recorder._source.state()["error"])
"""
    done = run(tmp_path, end)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[] 0\n", "")


@pytest.mark.slow
def test_a_pause_and_a_slow_kernel_are_no_hang(tmp_path):
    """Nothing is outstanding in the pause; while kernels end, nothing hangs."""
    end = """
time.sleep(1.5)
for _ in range(8):
    gpu.launch("slow", duration_ns=200_000_000)
gpu.synchronize()
time.sleep(1.5)
print(recorder.dumps)
"""
    done = run(tmp_path, end)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.slow
def test_a_launch_that_is_captured_is_no_hang(tmp_path):
    end = """
with gpu.capture() as graph:
    gpu.launch("captured")
time.sleep(2)
print(recorder.dumps, recorder._source.state()["outstanding"])
"""
    done = run(tmp_path, end)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[] ")
    assert list(tmp_path.iterdir()) == []


def test_launches_of_a_program_that_made_billions_of_calls_are_watched(gpu, tmp_path):
    now = gpu.now_ns
    gpu.replay(kernels=[{"name": "old", "start_ns": now + 1000, "end_ns": now + 2000, "correlation": 3_000_000_000}])
    with collector.record(folder=tmp_path, strict=True) as recorder:
        with gpu.capture():
            gpu.launch("captured")
        recorder._source.cut()
        assert recorder._source.state()["outstanding"] == 1


@pytest.mark.medium
def test_a_fork_has_no_recorder(tmp_path):
    end = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    print(recorder.is_running, collector.tracing.recorder.open_recorder(), flush=True)
    raise KeyError("in the child")
os.waitpid(child, 0)
print(recorder.is_running, len(recorder.dumps))
"""
    done = run(tmp_path, end)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False None\nTrue 0\n"
    assert "the last of what the GPU did" not in done.stderr


@pytest.mark.medium
def test_a_full_disk_is_one_line_and_the_program_goes_on(tmp_path):
    end = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
deadline = time.monotonic() + 60
while recorder._source.state() and not recorder._source.state()["is_broken"] and time.monotonic() < deadline:
    for number in range(500):
        gpu.launch("kernel", duration_ns=1000 + number * number)
    gpu.synchronize()
time.sleep(1)
recorder.stop()
print("done")
"""
    done = run(tmp_path, end)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr.count("the recorder cannot write any more") == 1


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("FULL DISK NOT TESTED: this user cannot mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(gpu: SimulatedGpu, recorder: Recorder) -> None:
    """Record until the disk of the recorder is full."""
    while recorder.is_running:
        for number in range(5000):
            gpu.launch("kernel", duration_ns=1000 + number * number % 10_007)
        gpu.synchronize()
        time.sleep(0.05)


@pytest.mark.medium
def test_what_a_full_disk_holds_can_be_dumped(gpu, small_disk, tmp_path, capsys):
    recorder = collector.record("64MB", folder=small_disk / "dumps", strict=True)
    fill(gpu, recorder)
    assert not recorder.is_running
    assert open_recorder() is recorder
    dump = recorder.dump(tmp_path / "out.gpurec")
    assert dump.wait() == tmp_path / "out.gpurec"
    kernels = len(Recording.load(dump.journal).kernels)
    assert kernels > 1000
    assert len(collector.load(dump.path).kernels) == kernels
    printed, deadline = "", time.monotonic() + 60
    while "it keeps what it has, for dumps, in " not in printed and time.monotonic() < deadline:
        time.sleep(0.05)  # it is looked for twice a second
        printed += capsys.readouterr().err
    assert printed.count("it keeps what it has, for dumps, in ") == 1
    with pytest.warns(CollectorWarning, match="can no longer write: .*No space left on device") as warned:
        recorder.stop()
    assert len(warned) == 1
    assert "Its records are in" not in str(warned[0].message)
    assert list(small_disk.glob(".collector-ring-*")) == []  # the dump has all of it
    assert len(Recording.load(dump.journal).kernels) == kernels


@pytest.mark.medium
def test_the_ring_on_a_full_disk_stays_if_it_was_not_dumped(gpu, small_disk):
    recorder = collector.record("64MB", folder=small_disk / "dumps", strict=True)
    fill(gpu, recorder)
    with pytest.warns(CollectorWarning, match="can no longer write") as warned:
        recorder.stop()
    (ring,) = small_disk.glob(".collector-ring-*/ring.journal")
    assert str(warned[0].message).endswith(f". Its records are in {ring}")
    assert len(Recording.load(ring).kernels) > 1000
    assert not recorder.is_running
    assert open_recorder() is None


@pytest.mark.medium
def test_a_dump_says_that_no_further_segment_could_be_begun(gpu, tmp_path):
    recorder = collector.record(folder=tmp_path / "dumps", strict=True)
    gpu.launch("early")
    gpu.synchronize()
    (recorder._ring.path / "000002.journal").mkdir()
    assert recorder._source.cut() is not None
    (recorder._ring.path / "000002.journal").rmdir()
    assert not recorder.is_running
    gpu.launch("late")
    gpu.synchronize()
    dump = recorder.dump(tmp_path / "out.gpurec")
    for found in (Recording.load(dump.journal), Recording.load(dump.wait())):
        assert found.kernels.names() == ["early"]
        assert found.counters["journal_broke_off"] == 1
        assert not found.ledger.complete
    with pytest.warns(CollectorWarning, match="can no longer write: File exists"):
        recorder.stop()


@pytest.mark.medium
def test_a_ring_that_is_removed_is_said_to_be(gpu, tmp_path, capsys):
    recorder = collector.record(folder=tmp_path / "dumps", strict=True)
    gpu.launch("kernel")
    gpu.synchronize()
    shutil.rmtree(recorder._ring.path)
    removal = f"the folder of its records, {recorder._ring.path}, was removed"
    printed = ""
    while removal not in printed:  # the test's time limit ends the wait
        time.sleep(0.05)
        printed += capsys.readouterr().err
    assert f"the recorder cannot write any more: {removal}" in printed
    assert not recorder.is_running
    with pytest.warns(CollectorWarning, match=f"nothing is dumped: {removal}"):
        assert recorder.dump() is None
    with pytest.warns(CollectorWarning, match="can no longer write: its file was removed"):
        recorder.stop()


def test_closed_segments_are_dumped_where_no_segment_can_be_closed(gpu, tmp_path, monkeypatch):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("first")
        gpu.synchronize()
        recorder._source.cut()
        gpu.launch("second")
        gpu.synchronize()
        with monkeypatch.context() as patch:
            patch.setattr(recorder._source, "cut", lambda **_: None)
            dump = recorder.dump()
    assert {kernel.name for kernel in Recording.load(dump.journal).kernels} == {"first"}


def test_a_file_that_cannot_be_written_is_one_warning(gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("kernel")
        gpu.synchronize()
        with pytest.warns(CollectorWarning, match="nothing is dumped: cannot write .*no_such_folder does not exist"):
            assert recorder.dump(tmp_path / "no_such_folder" / "x.gpurec") is None
    assert recorder.dumps == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_a_file_that_could_not_be_written_is_one_line_if_nobody_waits(gpu, tmp_path, capfd):
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder:
        gpu.launch("kernel")
        gpu.synchronize()
        (tmp_path / "gone").mkdir()
        dump = recorder.dump(tmp_path / "gone" / "out.json")
        (tmp_path / "gone").rmdir()  # before the other process has begun
        while not dump._conversion.has_ended:
            time.sleep(0.02)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"collector: cannot write {dump.path}: ")
    with pytest.raises(OutputError) as raised:
        dump.wait()
    assert str(raised.value).startswith(f"cannot write {dump.path}: ")
    assert str(dump.path) not in str(raised.value).removeprefix(f"cannot write {dump.path}")


@pytest.mark.slow
def test_a_file_that_cannot_be_written_after_the_end_of_the_program_is_one_line(tmp_path):
    end = """
import pathlib
target = pathlib.Path(sys.argv[1], "gone", "out.json")
target.parent.mkdir()
recorder.dump(target)
target.parent.rmdir()
os._exit(0)
"""
    done = run(tmp_path, end)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()  # it ends when the last process has closed it
    assert line.startswith(f"collector: cannot write {tmp_path}/gone/out.json: ")


def test_without_a_gpu_there_is_one_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so")
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", "/nowhere/libcupti.so")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recorder = collector.record(folder=tmp_path)
        recorder.stop()
    assert len(told) == 1
    assert recorder.unavailable
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_an_error_of_the_system_has_its_remedy(gpu, tmp_path, monkeypatch, number):
    def fail(*_: object, **__: object) -> str:
        raise OSError(number, os.strerror(number), str(tmp_path))

    remedy = f"{os.strerror(number)}. (Free space, or w|W)rite to another place"
    with collector.record(folder=tmp_path) as recorder:
        gpu.launch("kernel")
        monkeypatch.setattr("tempfile.mkdtemp", fail)
        with pytest.warns(CollectorWarning, match=f"nothing is dumped: {tmp_path}: {remedy}"):
            recorder.dump()
    message = f"nothing is recorded: the records cannot be kept in {tmp_path}: {remedy}"
    with pytest.warns(CollectorWarning, match=message):
        collector.record(folder=tmp_path).stop()
