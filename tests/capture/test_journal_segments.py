"""Journals that are cut into segments: each is readable by itself, together they are the whole."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import collector
from collector import analysis
from collector.cli import main
from collector.errors import CollectorWarning, InvalidFileError
from collector.formats.journal_format import read_segments
from collector.options import KINDS, TraceOptions
from collector.recording import journal_segments
from collector.recording.journal_segments import extent_of_journal, segments_of, session_start_ns
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.testing import SimulatedGpu
from collector.tracing.session import Session

pytestmark = pytest.mark.simulator


@pytest.fixture
def gpu():
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu(cuda="13.5") as simulated:
        yield simulated
        assert simulated.misuse() == {}


def streamed(journal: Path, **options: object) -> Session:
    settings: dict = {"journal": journal, "stream": True, "strict": True, "segment_bytes": 1 << 12, **options}
    return Session(TraceOptions(**settings, buffer_bytes=1 << 13))


def launch_in_pieces(gpu: SimulatedGpu, pieces: int = 30, launches: int = 40) -> None:
    """Launches that come back in many buffers, in annotations that are open across segments."""
    with collector.annotate("outer", flops=3):
        for piece in range(pieces):
            with collector.annotate(f"piece{piece % 3}", flops=piece % 5):
                for number in range(launches):
                    gpu.launch(f"kernel{number % 5}", stream=7 + number % 2, grid=(piece + 1, 1, 1))
            gpu.synchronize()


@pytest.mark.medium
def test_names_of_written_rows_are_forgotten_within_a_segment(gpu, tmp_path):
    """A program that makes a kernel of a new name for each step keeps no more than 4 MiB of them in memory."""
    journal = tmp_path / "run.journal"
    step = streamed(journal, segment_bytes=1 << 30)
    with step:
        for name in ["at_both_ends", *(f"{number}_".ljust(4000, "x") for number in range(1500)), "at_both_ends"]:
            gpu.launch(name)
            if name.startswith("1"):
                gpu.synchronize()
        gpu.synchronize()
    (segment,) = segments_of(journal)
    assert segment.read_bytes().count(b"at_both_ends") == 2
    assert step.recording.kernels.names().count("at_both_ends") == 2
    assert len(set(step.recording.kernels.names())) == 1501


@pytest.mark.medium
def test_segments_together_are_the_whole(gpu, tmp_path):
    journal = tmp_path / "run.journal"
    step = streamed(journal)
    with step:
        launch_in_pieces(gpu)
    assert len(segments_of(journal)) > 5
    recording = step.recording
    assert len(recording.kernels) == recording.ledger.launches_seen == recording.ledger.launches_matched == 1200
    assert recording.ledger.losses() == []
    names = [f"kernel{number % 5}" for number in range(40)] * 30
    by_call = np.argsort(recording.kernels.correlation_id)
    assert [recording.kernels[int(at)].name for at in by_call] == names
    paths = [f"outer/piece{piece % 3}" for piece in range(30) for _ in range(40)]
    found = recording.annotations_of(recording.kernels)
    assert [found[at] for at in by_call] == paths
    assert len(recording.annotations) == 31
    assert (recording.annotations.end_ns > recording.annotations.start_ns).all()
    assert [recording.details[number - 1].flops for number in recording.annotations.details_id] == [
        3,
        *(piece % 5 for piece in range(30)),
    ]
    assert recording.environment["devices"] == {0: "Simulated GPU"}
    assert collector.load(journal).kind == "journal"
    assert len(Recording.load(journal).kernels) == 1200
    assert list(tmp_path.iterdir()) == [journal]


def test_a_journal_states_the_rank_and_the_job(gpu, tmp_path):
    """The devices of what is made of it are named as those of a step in memory, also of one part."""
    journal = tmp_path / "run.journal"
    with streamed(journal, rank=3, job="trainer"):
        launch_in_pieces(gpu, pieces=10)
    for path in (journal, segments_of(journal)[0], segments_of(journal)[-1]):
        step = collector.load(path)
        assert step.device_prefix == "/job:trainer/replica:0/task:3"
        assert step.rank == 3
        assert step.step_stats.dev_stats[0].device == "/job:trainer/replica:0/task:3/cpu:0"
    assert collector.load(journal, window=(0, 1)).device_prefix == "/job:trainer/replica:0/task:3"


def test_details_that_had_no_room_are_a_line_of_the_ledger(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr("collector.tracing.known_details._MOST_PARTS", 5)
    with streamed(tmp_path / "run.journal"):
        for flops in range(1, 21):
            with collector.annotate("op", flops=flops):
                gpu.launch("kernel")
    recording = Recording.load(tmp_path / "run.journal")
    assert [details.flops for details in recording.details] == [1, 2, 3, 4, 5]
    assert recording.annotations.details_id.tolist() == [1, 2, 3, 4, 5, *[0] * 15]
    assert recording.ledger.losses() == [
        "15 annotations have no flops, bytes, inputs or stack: there are too many different ones for the memory"
    ]


def test_each_use_of_a_session_needs_a_journal_of_its_own(gpu, tmp_path):
    session = collector.trace(journal=tmp_path / "run.journal", stream=True)
    with session:
        gpu.launch("kernel")
    with pytest.warns(CollectorWarning, match=r"the journal of another step\. Put \{step\} into its name"), session:
        gpu.launch("kernel")
    assert len(Recording.load(tmp_path / "run.journal").kernels) == 1
    session = collector.trace(journal=tmp_path / "{step}.journal", stream=True, strict=True)
    for number in range(2):
        with session:
            gpu.launch("kernel")
        assert len(Recording.load(tmp_path / f"{number}.journal").kernels) == 1


@pytest.mark.medium
def test_each_segment_is_readable_by_itself(gpu, tmp_path):
    journal = tmp_path / "run.journal"
    with streamed(journal):
        launch_in_pieces(gpu)
    whole = Recording.load(journal)
    kernels, calls, forgotten = 0, 0, 0
    for number, path in enumerate(segments_of(journal)):
        part = Recording.load(path)
        assert part.ledger.losses() == [], path
        assert part.ledger.interrupted == 0
        assert part.environment["devices"] == {0: "Simulated GPU"}
        assert (part.ledger.rows_forgotten > 0) == (number > 0)
        assert part.ledger.rows_forgotten >= forgotten + kernels + calls - forgotten
        kernels, calls = kernels + len(part.kernels), calls + len(part.api_calls)
        # Launches whose call is in the segment before have no name here, and are counted.
        known = [path for path in part.annotations_of(part.kernels) if path]
        assert len(known) >= len(part.kernels) - part.ledger.launches_cut - part.ledger.rows_forgotten
        assert set(known) <= {"outer/piece0", "outer/piece1", "outer/piece2"}
    assert kernels == len(whole.kernels) == 1200
    # The last segment tells which calls of the end are the collector's own; they may be in the one before.
    assert len(whole.api_calls) <= calls <= len(whole.api_calls) + 2


@pytest.mark.parametrize("num_removed", [0, 3])
def test_a_window_states_the_rows_that_were_removed_and_no_others(gpu, tmp_path, num_removed):
    """Rows of segments before the window are still there."""
    journal = tmp_path / "run.journal"
    with streamed(journal):
        for _ in range(4):
            launch_in_pieces(gpu, pieces=10)
            gpu.advance(5_000_000_000)
    for path in segments_of(journal)[:num_removed]:
        path.unlink()
    whole = collector.load(journal)
    part = read_segments(journal, (12_000_000_000, None))
    assert 0 < len(part.recording.kernels) < len(whole.recording.kernels)
    assert part.ledger.rows_forgotten == whole.ledger.rows_forgotten
    assert (part.ledger.rows_forgotten > 0) == (num_removed > 0)


@pytest.mark.parametrize("lost", [1, 4, [3, 4]], ids=str)
def test_a_missing_segment_is_a_loss_with_its_number_of_rows(gpu, tmp_path, lost):
    journal = tmp_path / "run.journal"
    with streamed(journal):
        launch_in_pieces(gpu)
    whole = Recording.load(journal)
    segments = segments_of(journal)
    removed = [segments[number] for number in np.atleast_1d(lost)]
    for path in removed:
        path.unlink()
    found = Recording.load(journal)
    assert found.ledger.rows_missing > 0
    tables = {name: len(getattr(whole, name)) - len(getattr(found, name)) for name in SCHEMA}
    # The annotations of the gap that are open behind it are repeated.
    assert sum(tables.values()) <= found.ledger.rows_missing <= sum(tables.values()) + 31
    assert any("segments of the journal that are missing" in line for line in found.ledger.losses())
    assert len(set(found.annotations.external_id.tolist())) == len(found.annotations)
    ends = dict(zip(whole.annotations.external_id.tolist(), whole.annotations.end_ns.tolist(), strict=True))
    assert found.annotations.end_ns.tolist() == [ends[number] for number in found.annotations.external_id.tolist()]
    assert set(found.annotations_of(found.kernels)) <= {*whole.annotations_of(whole.kernels), ""}


def test_the_begin_of_a_ring_is_no_loss(gpu, tmp_path):
    journal = tmp_path / "run.journal"
    with streamed(journal):
        launch_in_pieces(gpu)
    whole = Recording.load(journal)
    for path in segments_of(journal)[:4]:
        path.unlink()
    found = Recording.load(journal)
    assert found.ledger.losses() == []
    assert found.ledger.rows_missing == 0
    assert found.ledger.rows_forgotten > 0
    assert len(found.api_calls) < len(whole.api_calls)  # kernels may come back in later segments
    assert found.clock.cupti_start_ns <= int(found.kernels.start_ns.min())
    assert found.ledger.early == found.ledger.late == 0
    # All that is missing is stated: kernels of forgotten rows, and launches on the edge.
    assert found.ledger.launches_seen + found.ledger.launches_cut >= len(set(found.kernels.correlation_id.tolist()))
    assert set(found.annotations_of(found.kernels)) <= {"outer/piece0", "outer/piece1", "outer/piece2", ""}
    (tmp_path / "part.gpurec").unlink(missing_ok=True)
    found.save(tmp_path / "part.gpurec")
    assert Recording.load(tmp_path / "part.gpurec").ledger.losses() == []


@pytest.mark.parametrize("num_bytes", [0, 4, 8])
def test_a_session_that_broke_off_as_it_began_a_segment_had_not_ended(gpu, tmp_path, num_bytes):
    journal = tmp_path / "run.journal"
    with streamed(journal):
        launch_in_pieces(gpu, pieces=4)
    last = segments_of(journal)[-1]
    last.write_bytes(last.read_bytes()[:num_bytes])
    found = Recording.load(journal)
    assert found.ledger.interrupted == 1
    assert not found.ledger.complete


@pytest.mark.parametrize("suffix", [".gpurec", ".json", ".pb", ".pftrace"])
def test_a_stream_that_cannot_begin_its_next_segment_is_incomplete_in_every_output(gpu, tmp_path, suffix):
    """Another file has its name, which stands for used up file descriptors and for a changed root folder."""
    journal = tmp_path / "run.journal"
    session = streamed(journal)
    session.start()
    (journal / "000003.journal").mkdir()
    launch_in_pieces(gpu)
    with pytest.warns(CollectorWarning, match="broke off before the step ended: File exists"):
        session.stop()
    (journal / "000003.journal").rmdir()
    found = session.recording
    assert len(found.api_calls) > 0  # kernels may come back only in later segments
    assert len(found.kernels) < 1200
    assert found.counters["journal_broke_off"] == found.ledger.interrupted == 1
    told, *_ = found.ledger.losses()
    assert told.startswith("the recording broke off while its program went on")
    assert not any("had not ended" in line for line in found.ledger.losses())
    found.save(tmp_path / f"saved{suffix}")
    if suffix != ".pftrace":
        assert told in collector.load(tmp_path / f"saved{suffix}").ledger.losses()
    else:
        assert told.encode() in (tmp_path / f"saved{suffix}").read_bytes()


def test_a_journal_states_that_it_broke_off_where_no_more_can_be_written(gpu, tmp_path):
    """The last frame of its only segment has no room."""
    journal = tmp_path / "run.journal"
    session = streamed(journal, segment_bytes=1 << 20).start()
    launch_in_pieces(gpu, pieces=3)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.warns(CollectorWarning, match="File too large"):
            session.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert session.recording.counters["journal_broke_off"] == 1


def test_graphs_and_objects_are_repeated(tmp_path):
    """Launches of a graph that was captured in the first segment have the path of its capture in the last."""
    journal = tmp_path / "run.journal"
    kinds = (*TraceOptions.kinds, "contexts", "streams", "devices")
    with SimulatedGpu(cuda="13.0") as gpu, streamed(journal, kinds=kinds) as step:
        with gpu.capture() as graph, collector.annotate("forward"):
            gpu.launch("captured")
        executable = graph.instantiate()
        graph.destroy()
        for _ in range(60):
            for _ in range(30):
                executable.launch()
            gpu.synchronize()
    assert len(segments_of(journal)) > 4
    assert step.ledger.losses() == []
    assert set(step.recording.kernels.annotations()) == {"<captured_at>/forward"}
    last = next(part for path in reversed(segments_of(journal)) if len((part := Recording.load(path)).kernels) > 10)
    assert set(last.kernels.annotations()) == {"<captured_at>/forward"}
    for table in ("contexts", "streams", "devices"):
        assert len(getattr(last, table)) == len(getattr(step.recording, table)) > 0


def test_child_graphs_and_updates_are_repeated(tmp_path):
    journal = tmp_path / "run.journal"
    graphs = {}
    with SimulatedGpu(cuda="13.0") as gpu, streamed(journal) as step:
        for path in ("parent", "child", "first", "second"):
            with gpu.capture() as graphs[path], collector.annotate(path):
                gpu.launch("updated" if path in ("first", "second") else path)
        graphs["parent"].add_child(graphs["child"])
        executables = [graphs["parent"].instantiate(), graphs["first"].instantiate()]
        executables[1].update(graphs["second"])
        for graph in graphs.values():
            graph.destroy()
        for _ in range(60):
            for _ in range(30):
                for executable in executables:
                    executable.launch()
            gpu.synchronize()
    assert len(segments_of(journal)) > 4
    assert step.ledger.losses() == []
    last = next(part for path in reversed(segments_of(journal)) if len((part := Recording.load(path)).kernels) > 10)
    for recording in (step.recording, last):
        assert {kernel.name: kernel.annotation for kernel in recording.kernels} == {
            "parent": "<captured_at>/parent",
            "child": "<captured_at>/child",
            "updated": "<captured_at>/second",
        }


def test_a_graph_that_is_replaced_by_its_copy_in_every_step_keeps_its_capture(tmp_path):
    """As in a program that copies its graph in every step, changes the copy and destroys the former one."""
    journal = tmp_path / "run.journal"
    with SimulatedGpu(cuda="13.0") as gpu, streamed(journal) as step:
        with gpu.capture() as graph, collector.annotate("forward"):
            gpu.launch("captured")
        for _ in range(40):
            for _ in range(10):
                copy = graph.clone()
                graph.destroy()
                graph = copy
            executable = graph.instantiate()
            executable.launch()
            executable.destroy()
            gpu.synchronize()
    segments = segments_of(journal)
    assert len(segments) > 5
    last = next(part for path in reversed(segments) if len((part := Recording.load(path)).kernels))
    for recording in (step.recording, last):
        assert set(recording.kernels.annotations()) == {"<captured_at>/forward"}
        assert recording.ledger.losses() == []
    assert len(step.recording.kernels) == 40


@pytest.mark.medium
def test_a_window_is_read_from_the_segments_that_have_it(gpu, tmp_path):
    journal = tmp_path / "run.journal"
    with streamed(journal):
        for _ in range(8):
            launch_in_pieces(gpu, pieces=4)
            gpu.advance(5_000_000_000)
    whole = Recording.load(journal)
    start = whole.clock.cupti_start_ns
    segments = segments_of(journal)
    for begin, end in [(9.0, 14.0), (None, 4.0), (30.0, None), (12.0, 12.1)]:
        part = collector.load(journal, window=(begin, end)).recording
        first = None if begin is None else start + round(begin * 1e9)
        last = None if end is None else start + round(end * 1e9)
        expected = whole.between(first, last)
        assert part.kernels.correlation_id.tolist() == expected.kernels.correlation_id.tolist()
        assert part.annotations_of(part.kernels) == expected.annotations_of(expected.kernels)
        assert len(part.api_calls) == len(expected.api_calls)
    segments[0].write_bytes(b"GPUJRNL\2 unreadable")  # it is not needed for a window behind it
    assert len(collector.load(journal, window=(9.0, 14.0)).recording.kernels) > 0


@pytest.mark.medium
@pytest.mark.parametrize("is_folder", [True, False])
def test_a_part_names_streams_as_the_whole_journal(gpu, tmp_path, capsys, is_folder):
    """The first context that uses stream 7 has work in segments that are not read."""
    journal = tmp_path / "run.journal"
    step = streamed(journal) if is_folder else collector.trace(journal=journal)
    with step:
        other = gpu.create_context()
        for context in (None, other, other, other):
            for number in range(200):
                gpu.launch(f"kernel{number % 5}", stream=7, context=context)
            gpu.synchronize()
            gpu.advance(5_000_000_000)
        path = journal if is_folder else tmp_path / "copy.journal"
        for _ in range(0 if is_folder else 300):
            shutil.copy(journal, path)
            if len(collector.load(path).recording.kernels) == 800:
                break
            time.sleep(0.1)
    part = collector.load(path, window=(9.0, 14.0))
    assert set(part.kernels.context_id.tolist()) == {other}
    main(["timeline", str(path), "-o", str(tmp_path / "part.json"), "--window", "9s..14s"])
    part.save(tmp_path / "saved.json")
    capsys.readouterr()
    for drawn in ("part.json", "saved.json"):
        events = json.loads((tmp_path / drawn).read_text())["traceEvents"]
        names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        assert {name for name in names if name.startswith("stream")} == {f"stream 7.{other}"}


@pytest.mark.medium
def test_a_device_that_worked_in_segments_that_are_not_read_was_idle(tmp_path):
    journal = tmp_path / "run.journal"
    with SimulatedGpu(devices=2) as gpu, streamed(journal):
        for device in (1, 0, 0, 0):
            for _ in range(200):
                gpu.launch("kernel", device=device)
            gpu.synchronize()
            gpu.advance(5_000_000_000)
    part = collector.load(journal, window=(9.0, 14.0)).recording
    assert set(part.kernels.device_id.tolist()) == {0}
    assert [(row["device_id"], row["busy_ns"] > 0) for row in analysis.devices(part)] == [(0, True), (1, False)]


@pytest.mark.medium
@pytest.mark.parametrize("options", [[], ["--name", "kernel1"], ["--min-duration", "5us"], ["--no-counters"]], ids=str)
@pytest.mark.parametrize("is_folder", [True, False])
def test_the_timeline_of_a_window_is_the_same_from_its_part_of_the_journal(
    gpu, tmp_path, monkeypatch, capsys, options, is_folder
):
    """Windows are counted from the start of the step, which the part does not have."""
    if is_folder:
        journal = tmp_path / "run.journal"
        with streamed(journal):
            gpu.advance(2_500_000_000)
            for _ in range(4):
                launch_in_pieces(gpu, 6, 10)
                gpu.advance(5_000_000_000)
    else:
        journal = tmp_path / "copy.journal"
        with collector.trace(journal=tmp_path / "step.journal", strict=True):
            for _ in range(4):
                launch_in_pieces(gpu, 6, 10)
                gpu.advance(5_000_000_000)
            for _ in range(300):
                shutil.copy(tmp_path / "step.journal", journal)
                if len(collector.load(journal).recording.kernels) == 240:
                    break
                time.sleep(0.1)
    collector.load(journal).recording.save(tmp_path / "whole.gpurec")
    window = ["--window", "7.4s..7.7s" if is_folder else "4.9s..5.2s", *options]
    loaded = []
    read = journal_segments.load_files
    monkeypatch.setattr(journal_segments, "load_files", lambda *given: loaded.append(read(*given)) or loaded[-1])
    assert main(["timeline", str(journal), "-o", str(tmp_path / "part.json"), *window]) == 0
    assert "the part of the window was read" in capsys.readouterr().err
    assert main(["timeline", str(tmp_path / "whole.gpurec"), "-o", str(tmp_path / "whole.json"), *window]) == 0
    part, whole = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("part", "whole"))
    assert len([event for event in part["traceEvents"] if event["ph"] == "X"]) > 3
    assert part["traceEvents"] == whole["traceEvents"]
    assert part["otherData"]["base_time_ns"] == whole["otherData"]["base_time_ns"]
    (recording,) = loaded
    assert 0 < len(recording.kernels) < 240


@pytest.mark.parametrize("shift_ns", [3_600_000_000_000, -3_600_000_000_000])
@pytest.mark.parametrize("is_folder", [True, False])
def test_a_damaged_time_is_not_in_the_extent_of_a_journal(gpu, tmp_path, shift_ns, is_folder):
    """The times of a drawn part count from the begin of this extent."""
    journal = tmp_path / "step.journal"
    with streamed(journal) if is_folder else collector.trace(journal=journal, strict=True):
        if is_folder:
            launch_in_pieces(gpu, 6, 40)
        gpu.inject("shifted_timestamps", value=shift_ns)
        launch_in_pieces(gpu, 6, 40)
        copy = journal
        while not is_folder:
            copy = tmp_path / "copy.journal"
            shutil.copy(journal, copy)
            if copy.stat().st_size and len(collector.load(copy).recording.kernels) == 239:
                break
            time.sleep(0.01)
    extent, recording = extent_of_journal(copy), Recording.load(copy)
    assert recording.ledger.out_of_window == 1
    assert extent.first_ns == min(recording.annotations.start_ns.min(), recording.api_calls.start_ns.min())
    assert extent.last_ns <= recording.clock.cupti_stop_ns


def test_a_timeline_with_memory_reads_the_whole_journal(gpu, tmp_path, capsys):
    """Of a window, too: its counters depend on what was allocated before."""
    journal = tmp_path / "run.journal"
    with streamed(journal, kinds=(*KINDS, "memory_operations")):
        for _ in range(2):
            gpu.malloc(1 << 20)
            launch_in_pieces(gpu, 6, 40)
    assert main(["timeline", str(journal), "-o", str(tmp_path / "part.json"), "--window", "1ms.."]) == 0
    assert "the part of the window" not in capsys.readouterr().err
    assert "2097152" in (tmp_path / "part.json").read_text()


@pytest.mark.medium
def test_a_window_of_a_journal_in_one_file(gpu, tmp_path):
    with collector.trace(journal=tmp_path / "step.journal") as step:
        for _ in range(5):
            launch_in_pieces(gpu, pieces=2)
            gpu.advance(4_000_000_000)
        gpu.synchronize()
        for _ in range(300):
            (tmp_path / "copy.journal").write_bytes((tmp_path / "step.journal").read_bytes())
            if len(collector.load(tmp_path / "copy.journal").recording.kernels) == 400:
                break
            time.sleep(0.1)
    part = collector.load(tmp_path / "copy.journal", window=(3.9, 8.5)).recording
    start = step.recording.clock.cupti_start_ns
    expected = step.recording.between(start + 3_900_000_000, start + 8_500_000_000)
    assert part.kernels.correlation_id.tolist() == expected.kernels.correlation_id.tolist()
    assert 0 < len(part.kernels) < 400


def test_a_segment_with_a_damaged_beginning_is_left_out_of_a_window(gpu, tmp_path):
    journal = tmp_path / "run.journal"
    with streamed(journal):
        launch_in_pieces(gpu)
    segments = sorted(journal.iterdir())
    assert len(segments) > 5
    whole = Recording.load(journal)
    start_ns = session_start_ns(journal)
    for damaged in segments[:2]:
        data = bytearray(damaged.read_bytes())
        at = data.index(b"start_ns", data.index(b"kernels")) + len("start_ns") + 4  # the width of the first column
        data[at : at + 4] = (255).to_bytes(4, "little")
        damaged.write_bytes(data)
    assert session_start_ns(journal) == start_ns
    part = collector.load(journal, window=(0, 1e6)).recording
    assert 0 < len(part.api_calls) < len(whole.api_calls)  # kernels may come back in later segments
    for each in segments:
        each.write_bytes(b"GPUJRNL\2")
    with pytest.raises(InvalidFileError, match="there is no segment of a journal"):
        session_start_ns(journal)


@pytest.mark.parametrize("missing", [None, "000005"])
def test_segments_of_version_2_are_read(tmp_path, missing):
    """Each of them tells all paths again, and counts them from 0. The first three had been removed."""
    journal = tmp_path / "run.journal"
    shutil.copytree(Path(__file__).parent.parent / "data/journals/v2", journal)
    if missing:
        (journal / f"{missing}.journal").unlink()
    recording = Recording.load(journal)
    found = [kernel.annotation for kernel in recording.kernels if kernel.annotation]
    steps = {name: found.count(name) for name in found}
    assert len(steps) >= 2
    assert set(steps) <= {f"run/step {number}/forward" for number in range(12)}
    assert max(steps.values()) == 30
    assert (recording.ledger.losses() == []) == (missing is None)
    assert len(set(recording.strings)) == len(recording.strings)


@pytest.mark.parametrize("missing", [None, "000005"])
def test_segments_of_version_3_are_read(tmp_path, missing):
    """Each of them tells all strings again, and counts them from 0. The first three had been removed."""
    journal = tmp_path / "run.journal"
    shutil.copytree(Path(__file__).parent.parent / "data/journals/v3", journal)
    parts = [4, 5, 6]
    if missing:
        (journal / f"{missing}.journal").unlink()
        parts.remove(5)
    recording = Recording.load(journal)
    assert recording.nvtx_ranges.names() == [f"mark {10 * part + number}" for part in parts for number in range(10)]
    assert [kernel.name for kernel in recording.kernels] == [f"kernel {k.grid_x - 1}" for k in recording.kernels]
    assert len(recording.kernels) == 10 * len(parts)
    assert len(set(recording.strings)) == len(recording.strings)


def test_a_view_of_a_profile_is_not_written_over_a_segment(gpu, tmp_path, capsys):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal, stream=True):
        gpu.launch("k")
        gpu.synchronize()
    segment = segments_of(journal)[0]
    content = segment.read_bytes()
    assert main(["prof", str(journal), "scope", "-output", f"file:outfile={segment}"]) == 2
    assert f"cannot write {segment}: it is an input" in capsys.readouterr().err
    assert segment.read_bytes() == content


def test_a_window_must_not_end_before_it_begins(tmp_path):
    with pytest.raises(ValueError, match="ends at 1 s, before it begins at 2 s"):
        collector.load(tmp_path, window=(2, 1))


def test_a_folder_without_segments(tmp_path):
    with pytest.raises(InvalidFileError, match="this is a folder"):
        collector.load(tmp_path)
    with pytest.raises(InvalidFileError, match="there is no segment of a journal in this folder"):
        Recording.load(tmp_path)


def test_a_segment_of_another_session_is_left_out(gpu, tmp_path):
    for name in ("first.journal", "second.journal"):
        with streamed(tmp_path / name):
            launch_in_pieces(gpu, pieces=10)
    number = len(segments_of(tmp_path / "first.journal")) + 1
    foreign = segments_of(tmp_path / "second.journal")[-1]
    foreign.rename(tmp_path / "first.journal" / f"{number:06d}.journal")
    assert len(Recording.load(tmp_path / "first.journal").kernels) == 400


@pytest.mark.medium
def test_a_killed_program_leaves_its_segments_and_the_names_of_its_devices(tmp_path):
    program = f"""
import os, signal, time
from pathlib import Path
import collector
from collector.options import KINDS, TraceOptions
from collector.recording import journal_segments
from collector.testing import SimulatedGpu
from collector.tracing.session import Session
gpu = SimulatedGpu().__enter__()
journal = Path({str(tmp_path / "run.journal")!r})
options = TraceOptions(journal=journal, stream=True, segment_bytes=1 << 12, buffer_bytes=1 << 13)
Session(options).__enter__()
for _ in range(20):
    for number in range(50):
        gpu.launch("kernel")
    gpu.synchronize()
time.sleep(1.5)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    recording = Recording.load(tmp_path / "run.journal")
    assert len(recording.kernels) == 1000
    assert recording.ledger.interrupted == 1
    assert recording.environment["devices"] == {0: "Simulated GPU"}
    assert "cuDeviceGetName" not in recording.api_calls.names()


@pytest.mark.slow
def test_cut_anywhere_in_the_last_segments_it_is_readable(gpu, tmp_path):
    """A program may be killed at every point of a rotation."""
    journal = tmp_path / "run.journal"
    with streamed(journal):
        launch_in_pieces(gpu, pieces=8)
    segments = segments_of(journal)
    kernels = set()
    for path in segments[:0:-1]:
        data = path.read_bytes()
        for length in range(len(data), -1, -max(1, len(data) // 60)):
            path.write_bytes(data[:length])
            recording = Recording.load(journal)
            kernels.add(len(recording.kernels))
            assert recording.ledger.rows_missing == 0
        path.unlink()
    assert max(kernels) == 320
    assert min(kernels) < 80


@pytest.mark.medium
def test_a_path_is_written_by_another_process(gpu, tmp_path):
    with collector.trace(
        tmp_path / "step.gpurec", journal=tmp_path / "run.journal", stream=True, label="a run"
    ) as step:
        launch_in_pieces(gpu, pieces=3)
    recording = collector.load(tmp_path / "step.gpurec").recording
    assert len(recording.kernels) == 120
    assert recording.environment["label"] == "a run"
    assert os.getpid() in recording.environment["thread_names"]
    assert (tmp_path / "run.journal").is_dir()
    assert step.recording.environment["thread_names"] == recording.environment["thread_names"]


def test_a_stream_needs_a_journal_and_a_source_that_keeps_one(gpu, tmp_path):
    with pytest.raises(ValueError, match="name one"):
        collector.trace(stream=True)
    (tmp_path / "run.journal").mkdir()
    step = collector.trace(journal=tmp_path / "run.journal", stream=True)
    with pytest.warns(CollectorWarning, match=r"not traced: .*run\.journal"), step:
        gpu.launch("kernel")
    assert list((tmp_path / "run.journal").iterdir()) == []


@pytest.mark.medium
def test_a_full_disk_ends_the_stream_with_one_warning(tmp_path):
    program = f"""
import resource, warnings
import collector
from collector.testing import SimulatedGpu
with SimulatedGpu() as gpu, warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with collector.trace(journal={str(tmp_path / "run.journal")!r}, stream=True, buffer_bytes=8192) as step:
        gpu.launch("kernel")
        gpu.synchronize()
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
        for number in range(5000):
            gpu.launch("kernel")
            if number % 100 == 0:
                gpu.synchronize()
                gpu.wait_until_idle()
print(*(warning.message for warning in told), sep="\\n")
counters = step.recording.counters
print(0 < len(step.recording.kernels) < 5001, step.ledger.interrupted, counters.get("journal_broke_off"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    warning, kept = done.stdout.splitlines()
    assert warning.endswith("broke off before the step ended: File too large")
    assert kept == "True 1 1"


USED_UP = """
import os, pathlib, resource, sys, warnings
import collector
from collector.options import TraceOptions
from collector.testing import SimulatedGpu
from collector.tracing.session import Session

def work(gpu, launches):
    for number in range(launches):
        gpu.launch("kernel")
        if number % 50 == 49:
            gpu.synchronize()
            gpu.wait_until_idle()

def use_up():
    files = []
    try:
        while True:
            files.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        return files

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
"""
"""The begin of programs that use up their file descriptors."""


@pytest.mark.medium
def test_a_program_without_a_free_file_descriptor_is_streamed_on(tmp_path):
    """Servers at their limit of connections, and programs that do not close their files."""
    program = f"""{USED_UP}
with SimulatedGpu() as gpu, warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    journal = {str(tmp_path / "run.journal")!r}
    options = TraceOptions(journal=pathlib.Path(journal), stream=True, segment_bytes=4096, buffer_bytes=8192)
    with Session(options) as step:
        work(gpu, 500)
        before = len(os.listdir(journal))
        files = use_up()
        work(gpu, 1000)
        for file in files:
            os.close(file)
        during = len(os.listdir(journal))
        work(gpu, 500)
print([str(warning.message) for warning in told])
print(during - before > 5, len(step.recording.kernels), step.ledger.losses())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\nTrue 2000 []\n"


LONG_STREAM = """
import sys
import collector
from collector.testing import SimulatedGpu

def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS:"))

def launch(gpu, thousands):
    for _ in range(thousands):
        for _ in range(1000):
            gpu.launch("kernel", launch="runtime")
        gpu.synchronize()

with SimulatedGpu(cuda="13.5") as gpu:
    # What waits to be decoded has a bound of its own, of 4 MB here.
    with collector.trace(journal=sys.argv[1], stream=True, buffer_bytes=1 << 16, max_buffers=64):
        launch(gpu, 20)
        before = resident()
        launch(gpu, 300)
        print(resident() - before)
    assert gpu.misuse() == {}
"""


@pytest.mark.medium
def test_memory_is_bounded_and_disk_is_not(tmp_path):
    """The rows of a step are in the journal alone, and every launch takes less than 60 bytes there.

    The memory is that of a process of its own: a process that ran other tests grows and shrinks by megabytes.
    """
    done = subprocess.run(
        [sys.executable, "-c", LONG_STREAM, tmp_path / "run.journal"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if "COLLECTOR_SANITIZED" not in os.environ:  # a sanitizer keeps freed memory for a while on purpose
        assert int(done.stdout) < 8_000  # kilobytes; 300,000 launches take more than 36,000 as rows
    num_bytes = sum(path.stat().st_size for path in segments_of(tmp_path / "run.journal"))
    assert num_bytes / 320_000 < 60


def test_a_forked_child_leaves_the_segments_alone(gpu, tmp_path):
    with streamed(tmp_path / "run.journal") as step:
        gpu.launch("kernel")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            step.__exit__(None, None, None)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        launch_in_pieces(gpu, pieces=4)
    assert len(step.recording.kernels) == 161
