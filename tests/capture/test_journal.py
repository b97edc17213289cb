"""Journals: the records of a step survive when its program is killed."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties import examples

import collector
from collector.errors import CollectorWarning, InvalidFileError, OutputError
from collector.options import KINDS
from collector.recording.journal import load_journal
from collector.recording.journal_frames import HEAD_BYTES, MAGIC, VERSION
from collector.recording.recording import Recording
from collector.recording.schema import RECORDS, SCHEMA
from collector.recording.text_columns import text_column
from collector.sources import open_source
from collector.sources.replay import ReplaySource
from collector.testing import SimulatedGpu
from tests.support.file_permissions import permissions_hold

pytestmark = pytest.mark.simulator

SUPPORT = Path(__file__).resolve().parents[1] / "support"


@pytest.fixture
def gpu():
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu(devices=2) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def caught_up(journal: Path, **wanted: int) -> bytes:
    """The journal's bytes as soon as it has that many rows of each table; the test's time limit ends the wait."""
    while True:
        data = journal.read_bytes()
        if len(data) < 8:
            continue
        try:
            recording = load_journal(journal, data)
        except InvalidFileError:  # its first frame is being written
            continue
        if all(len(getattr(recording, table)) >= count for table, count in wanted.items()):
            return data
        time.sleep(0.01)


def test_a_journal_does_not_contain_the_path_of_libcupti(gpu: SimulatedGpu, tmp_path: Path) -> None:
    """The simulator is in a folder of this checkout, as a user's libcupti may be in a home."""
    with collector.trace(journal=tmp_path / "step.journal"):
        gpu.launch("kernel")
        data = caught_up(tmp_path / "step.journal")
    library = Path(open_source("native").probe()["cupti_path"])
    assert library.is_absolute()
    assert str(library.parent).encode() not in data
    assert library.name.encode() in data


def launch_all_kinds(gpu: SimulatedGpu) -> None:
    for number in range(50):
        with collector.annotate("layer1"), collector.annotate("conv", flops=7 * number, op="Conv2D", inputs=["in"]):
            gpu.launch(f"kernel{number % 7}", stream=7 + number % 3, duration_ns=1_000, grid=(number + 1, 2, 1))
        gpu.launch("other", stream=5, device=1)
    gpu.memcpy("HtoD", 4096, stream=9, src="pinned")
    gpu.memcpy_peer(0, 1, 8192, stream=13)
    gpu.memset(512, stream=9)
    gpu.free(gpu.malloc(1 << 20, stream=7), stream=7)
    gpu.synchronize()


@pytest.mark.medium
def test_a_killed_program_leaves_what_it_did(tmp_path):
    journal = tmp_path / "step.journal"
    command = [sys.executable, str(SUPPORT / "killed_program.py"), str(journal), "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    trace = collector.load(journal)
    assert trace.kind == "journal"
    recording = trace.recording
    assert len(recording.kernels) == recording.ledger.launches_seen == 2000
    assert recording.annotations_of(recording.kernels).count("step1/op") == 667
    assert {recording.strings[name] for name in recording.kernels.name_id} == {f"kernel{n}" for n in range(5)}
    assert recording.details[0].op == "MatMul"
    assert recording.ledger.decode_cpu_ns > 0
    assert not recording.ledger.complete
    assert recording.ledger.losses() == [
        "this is the journal of a step that had not ended: records that had not reached it are missing"
    ]

    packed = tmp_path / "step.journal.gz"
    packed.write_bytes(gzip.compress(journal.read_bytes()))
    assert len(collector.load(packed).recording.kernels) == 2000
    drawn = tmp_path / "step.json"
    command = [sys.executable, "-m", "collector", "timeline", str(journal), "-o", str(drawn)]
    subprocess.run(command, check=True, capture_output=True)
    events = json.loads(drawn.read_text())["traceEvents"]
    assert sum(event.get("name", "").startswith("kernel") and event["ph"] == "X" for event in events) >= 2000


@pytest.mark.medium
def test_annotations_reach_the_journal_without_work_on_a_gpu(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal), collector.annotate("outer"):
        for number in range(100):
            with collector.annotate("load", flops=number + 1):
                pass
        recording = load_journal(journal, caught_up(journal, annotations=101))
    assert recording.annotations.end_ns.all()  # also of the one that is open, as the journal ends there
    assert len(recording.details) == 100
    assert len(recording.kernels) == 0


@pytest.mark.slow
def test_a_journal_does_not_grow_while_nothing_happens(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal):
        with collector.annotate("load"):
            pass
        caught_up(journal, annotations=1)
        size = journal.stat().st_size
        time.sleep(1.2)  # two periods
        assert journal.stat().st_size == size


@pytest.mark.medium
def test_the_journal_holds_what_the_recording_does(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    kinds = [*KINDS, "memory_operations", "peer_copies"]
    wanted = {"kernels": 100, "memcpys": 2, "memsets": 1, "memory_operations": 2, "synchronizations": 1}
    with collector.trace(journal=journal, kinds=kinds, stacks=True) as step, collector.annotate("open all the while"):
        launch_all_kinds(gpu)
        data = caught_up(journal, **wanted)
    assert not journal.exists()
    copy = tmp_path / "copy.journal"
    copy.write_bytes(data)
    found, whole = Recording.load(copy), step.recording
    of_other_programs = {"graph_changes", "nvtx_ranges", "collectives", "other_ranges", "counter_samples"}
    unasked = {"overheads", *of_other_programs, *(record.table for record in RECORDS if record.option not in kinds)}
    for table in SCHEMA:
        ours, theirs = getattr(found, table), getattr(whole, table)
        if table == "api_calls":  # the end of the step makes calls of its own, after the copy
            theirs = theirs[: len(ours)]
        assert len(ours) == len(theirs), table
        assert len(ours) > 0 or table in unasked, table
        for column in SCHEMA[table]:
            if text_column(column):  # numbers of texts, whose order is nobody's
                assert ours.texts(column) == theirs.texts(column), table
            elif (table, column) == ("annotations", "end_ns"):
                assert (ours.end_ns[1:] == theirs.end_ns[1:]).all()  # the first was open
            else:
                np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column), f"{table}.{column}")
    assert found.details == whole.details
    assert found.annotations_of(found.kernels) == whole.annotations_of(whole.kernels)
    assert found.clock.cupti_start_ns == whole.clock.cupti_start_ns
    assert found.clock.offset_ns == whole.clock.offset_ns
    same = set(found.environment) - {"thread_names"}
    assert {key: whole.environment[key] for key in same} == {key: found.environment[key] for key in same}


@pytest.mark.medium
def test_annotations_that_end_between_two_frames(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal) as step:
        with collector.annotate("first"):
            gpu.launch("kernel")
            gpu.synchronize()
            caught_up(journal, kernels=1, annotations=1)
        with collector.annotate("second"):
            gpu.launch("kernel")
            gpu.synchronize()
            data = caught_up(journal, kernels=2, annotations=2)
    copy = tmp_path / "copy.journal"
    copy.write_bytes(data)
    found = Recording.load(copy).annotations
    assert found.end_ns[0] == step.recording.annotations.end_ns[0]
    assert found.names() == ["first", "second"]


@pytest.mark.parametrize("cuda", ["12.0", "12.9", "13.5"])
def test_the_journal_goes_when_the_step_is_where_it_belongs(cuda, tmp_path):
    journal, path = tmp_path / "step.journal", tmp_path / "step.json"
    with SimulatedGpu(cuda=cuda) as gpu:
        for _ in range(3):
            with collector.trace(path, journal=journal) as step:
                assert journal.exists()
                gpu.launch("kernel")
            assert step.ledger.complete
            assert [file.name for file in tmp_path.iterdir()] == ["step.json"]
        assert gpu.misuse() == {}


def test_a_program_that_goes_to_another_folder(gpu, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with collector.trace(journal=os.fsdecode(b"step\xff.journal")):
        assert len(list(tmp_path.glob("*.journal"))) == 1
        os.chdir(elsewhere)
        gpu.launch("kernel")
    assert list(tmp_path.rglob("*.journal")) == []


def test_the_journal_goes_after_a_body_that_raised(gpu, tmp_path):
    step = collector.trace(journal=tmp_path / "step.journal")

    @step
    def body() -> None:
        gpu.launch("kernel")
        raise KeyError

    with pytest.raises(KeyError):
        body()
    assert len(step.kernels) == 1
    assert list(tmp_path.iterdir()) == []


def test_it_stays_where_the_trace_cannot_be_written(gpu, tmp_path):
    folder, journal = tmp_path / "out", tmp_path / "step.journal"
    folder.mkdir()

    @collector.trace(folder / "step.json", journal=journal)
    def step() -> None:
        gpu.launch("kernel")
        folder.rmdir()

    with pytest.warns(CollectorWarning) as warned:
        step()
    assert "the trace is not saved" in str(warned[0].message)
    assert f"the records are in the journal {journal}" in str(warned[1].message)
    assert len(Recording.load(journal).kernels) == 1


@pytest.mark.parametrize("strict", [False, True])
def test_one_that_is_there_is_not_written_over(strict, gpu, tmp_path):
    journal = tmp_path / "step.journal"
    journal.write_bytes(b"of another program")
    step = collector.trace(journal=journal, strict=strict)
    if strict:
        with pytest.raises(OutputError, match="exists already"), step:
            pass
    else:
        with pytest.warns(CollectorWarning, match=r"no journal is kept: .*step\.journal exists already"), step:
            gpu.launch("kernel")
        assert len(step.kernels) == 1
    assert journal.read_bytes() == b"of another program"


def test_a_folder_that_is_not_there(gpu, tmp_path):
    journal = tmp_path / "nowhere" / "step.journal"
    step = collector.trace(journal=journal)
    with pytest.warns(CollectorWarning, match="no journal is kept: .*does not exist"), step:
        gpu.launch("kernel")
    assert len(step.kernels) == 1


def test_a_name_that_is_too_long(gpu, tmp_path):
    step = collector.trace(journal=tmp_path / ("n" * 300))
    with pytest.warns(CollectorWarning, match="no journal is kept: .* its name has 300 bytes"), step:
        gpu.launch("kernel")
    assert len(step.kernels) == 1


def test_a_folder_that_this_user_may_not_enter(gpu, tmp_path):
    (tmp_path / "locked").mkdir(mode=0)
    step = collector.trace(journal=tmp_path / "locked" / "step.journal")
    with (
        permissions_hold(),
        pytest.warns(CollectorWarning, match="no journal is kept: .*not writable for this user"),
        step,
    ):
        gpu.launch("kernel")
    assert len(step.kernels) == 1


def test_a_source_that_keeps_none(gpu, tmp_path):
    with collector.trace() as step:
        gpu.launch("kernel")
    again = collector.trace(source=ReplaySource(step.recording), journal=tmp_path / "step.journal")
    with pytest.warns(CollectorWarning, match="no journal is kept: the source 'replay' keeps no journal"), again:
        pass
    assert len(again.kernels) == 1


def test_a_start_that_fails_leaves_none(tmp_path):
    with SimulatedGpu() as gpu:
        gpu.inject("error", target="cuptiActivityEnable")
        with pytest.warns(CollectorWarning, match="not traced"), collector.trace(journal=tmp_path / "step.journal"):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_a_full_disk_ends_the_journal_and_nothing_else(tmp_path):
    program = f"""
import resource, sys, warnings
import collector
from collector.testing import SimulatedGpu
warnings.simplefilter("error")
with SimulatedGpu() as gpu:
    step = collector.trace(journal={str(tmp_path / "step.journal")!r})
    step.__enter__()
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    for _ in range(5000):
        gpu.launch("kernel")
    gpu.synchronize()
    try:
        step.__exit__(None, None, None)
    except collector.CollectorWarning as warning:
        print(warning)
    print(len(step.kernels), step.ledger.complete)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "step.journal broke off before the step ended: File too large" in done.stdout
    assert "5000 True" in done.stdout


@pytest.mark.parametrize("path", [None, "step.json"])
def test_a_journal_that_is_the_result_and_is_removed_is_one_warning(gpu, tmp_path, path):
    journal = tmp_path / "step.journal"
    session = collector.trace(path and tmp_path / path, journal=journal, stream=True)
    message = f"the trace is lost: its journal {journal} was removed before the step ended"
    session.start()
    gpu.launch("kernel")
    shutil.rmtree(journal)
    with pytest.warns(CollectorWarning, match=message) as warned:
        session.stop()
    assert len(warned) == 1
    assert session.unavailable in message
    assert len(session.recording.kernels) == 0
    assert session.ledger.untraced == 1
    assert list(tmp_path.iterdir()) == []


def test_a_journal_whose_files_are_removed_is_no_result(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    session = collector.trace(journal=journal, stream=True).start()
    for segment in list(journal.iterdir()):
        segment.unlink()
    with pytest.warns(CollectorWarning, match="was removed"):
        session.stop()
    assert session.ledger.untraced == 1


def test_a_trace_and_its_journal_in_a_removed_folder(gpu, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    session = collector.trace(folder / "step.json", journal=folder / "step.journal").start()
    gpu.launch("kernel")
    shutil.rmtree(folder)
    with pytest.warns(CollectorWarning) as warned:
        session.stop()
    not_saved, of_the_journal = (str(warning.message) for warning in warned)
    assert not_saved.startswith("the trace is not saved: ")
    assert of_the_journal == f"the journal {folder / 'step.journal'} was removed before the step ended"
    assert len(session.kernels) == 1


def test_a_stream_is_found_where_it_was_begun(gpu, tmp_path, monkeypatch):
    """A program may change its folder inside the step."""
    monkeypatch.chdir(tmp_path)
    with collector.trace(journal="step.journal", stream=True, strict=True) as session:
        gpu.launch("kernel")
        monkeypatch.chdir("/")
    assert len(session.recording.kernels) == 1


def test_every_rank_keeps_a_journal_of_its_own(gpu, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    with collector.trace(journal=tmp_path / "step.journal"):
        gpu.launch("kernel")
        assert [path.name for path in tmp_path.iterdir()] == ["step.rank3.journal"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_a_time_in_the_future_does_not_lengthen_the_step_of_a_killed_program(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal, strict=True):
        gpu.inject("shifted_timestamps")  # by an hour
        gpu.launch("shifted")
        gpu.launch("kernel")
        gpu.synchronize()
        recording = load_journal(journal, caught_up(journal, kernels=1))
    assert recording.kernels.names() == ["kernel"]
    assert recording.ledger.late == 1
    assert recording.clock.window_ns < 3_600_000_000_000


def test_a_journal_of_a_killed_program_states_the_rank(gpu, tmp_path):
    with collector.trace(journal=tmp_path / "step.journal", rank=2, job="trainer", strict=True) as session:
        gpu.launch("kernel")
        killed = tmp_path / "killed.journal"
        shutil.copy(session._use.tracer._journal.path, killed)
    step = collector.load(killed)
    assert (step.rank, step.device_prefix) == (2, "/job:trainer/replica:0/task:2")


@pytest.mark.medium
@pytest.mark.parametrize(
    ("num_bytes", "is_kept"), [pytest.param(0, False, marks=pytest.mark.slow), (100, False), (60_000, True)]
)
def test_the_report_of_a_journal_that_broke_off_is_true(tmp_path, num_bytes, is_kept):
    """The disk is full: the trace cannot be written either, nor its recording, so that the journal is all there is."""
    program = f"""
import os, resource, time, warnings
from pathlib import Path
import collector
from collector.recording.journal_frames import holds_records
from collector.testing import SimulatedGpu
journal = Path({str(tmp_path / "step.journal")!r})
with SimulatedGpu() as gpu, warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    resource.setrlimit(resource.RLIMIT_FSIZE, ({num_bytes}, {num_bytes}))
    with collector.trace("step.json", journal=journal, buffer_bytes=8192):
        gpu.launch("kernel")
        gpu.synchronize()
        while {is_kept} and not holds_records(journal):
            time.sleep(0.01)
        for _ in range(5000):
            gpu.launch(os.urandom(20).hex())  # names that take more than the limit in a recording, too
        gpu.synchronize()
print(*(warning.message for warning in told), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    not_saved, of_the_journal = done.stdout.splitlines()
    assert not_saved.startswith("the trace is not saved: ")
    journal = tmp_path / "step.journal"
    assert journal.exists() == is_kept
    if is_kept:
        assert of_the_journal.endswith("File too large; it contains the records until then")
        assert len(Recording.load(journal).kernels) > 0
    else:
        assert of_the_journal == f"the journal {journal} broke off before anything was in it: File too large"


IN_PLACE_OF_A_JOURNAL = """
import os, pathlib, sys, time, warnings
import collector
from collector.testing import SimulatedGpu

path = pathlib.Path(sys.argv[1])
with SimulatedGpu() as gpu, warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with collector.trace(journal=path, buffer_bytes=4096) as step:
        gpu.launch("kernel")
        with_path = [file for file in pathlib.Path("/proc/self/fd").iterdir() if file.resolve() == path]
        assert with_path, "the journal is not open"
        for file in with_path:
            os.close(int(file.name))
        path.unlink()
        if sys.argv[2] == "pipe":
            os.mkfifo(path)
        else:
            path.write_text("of the program")
        for _ in range(200):
            gpu.launch("kernel")
        gpu.synchronize()
    [broke_off] = [str(warning.message) for warning in told if "broke off" in str(warning.message)]
    assert "the program closed its file, which is no longer in its place" in broke_off, broke_off
    assert len(step.kernels) == 201
    assert path.is_fifo() or path.read_text() == "of the program"
"""


@pytest.mark.medium
@pytest.mark.parametrize("other", ["pipe", "file"])
def test_a_journal_that_was_closed_is_not_continued_in_what_took_its_place(other, tmp_path):
    """Nobody reads the pipe, and no thread of ours waits for that."""
    path = tmp_path.resolve() / "run.journal"
    program = [sys.executable, "-c", IN_PLACE_OF_A_JOURNAL, str(path), other]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_forked_child_leaves_it_alone(gpu, tmp_path):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal) as step:
        gpu.launch("kernel")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the child does nothing with them
            child = os.fork()
        if child == 0:
            step.__exit__(None, None, None)
            os._exit(0 if journal.exists() else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert not journal.exists()
    assert len(step.kernels) == 1


@pytest.mark.medium
def test_buffers_are_handed_over_while_threads_launch(gpu, tmp_path):
    journal = tmp_path / "step.journal"

    def launch(stream: int) -> None:
        for _ in range(3000):
            with collector.annotate(f"thread {stream}"):
                gpu.launch("kernel", stream=stream)

    with collector.trace(journal=journal, buffer_bytes=1 << 16) as step:
        threads = [threading.Thread(target=launch, args=(7 + number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gpu.synchronize()
        data = caught_up(journal, kernels=9000)
    (tmp_path / "copy.journal").write_bytes(data)
    found = Recording.load(tmp_path / "copy.journal")
    assert len(found.kernels) == len(step.kernels) == 9000
    assert set(found.annotations_of(found.kernels)) == {"thread 7", "thread 8", "thread 9"}
    assert step.ledger.complete


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> tuple[bytes, Path]:
    """A journal of two frames besides the first one, and a path to write damaged ones to."""
    folder = tmp_path_factory.mktemp("journal")
    with SimulatedGpu() as gpu, collector.trace(journal=folder / "step.journal"):
        for count in (1, 2):
            with collector.annotate("op", flops=3):
                gpu.launch("kernel")
            gpu.synchronize()
            data = caught_up(folder / "step.journal", kernels=count)
    return data, folder / "damaged.journal"


@pytest.mark.parametrize("length", [8, 10, 23])
def test_one_that_ends_in_its_head_is_said_to_be_cut_off(small, length):
    data, path = small
    path.write_bytes(data[:length])
    with pytest.raises(InvalidFileError, match=r": a journal without even a whole beginning \(it is cut off\)$"):
        collector.load(path)


@pytest.mark.slow
def test_cut_anywhere_it_gives_the_frames_before(small):
    data, path = small
    counts = []
    beginning = 16 + 8 + int.from_bytes(data[16:24], "little")
    for length in [*range(8, beginning, 41), *range(beginning, len(data), 3), len(data)]:
        path.write_bytes(data[:length])
        try:
            trace = collector.load(path)
            counts.append(len(trace.recording.kernels))
            assert trace.cut_at is None or beginning <= trace.cut_at < length
        except InvalidFileError as found:
            error = found
            assert length < beginning, error
    assert "without even a whole beginning" in str(error)
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2}
    assert trace.cut_at is None


@pytest.mark.medium
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 1 << 20), value=st.binary(min_size=1, max_size=9))
def test_damaged_anywhere_it_gives_a_recording_or_one_clear_error(small, at, value):
    data, path = small
    at %= len(data)
    path.write_bytes(data[:at] + value + data[at + len(value) :])
    error_text = ""
    try:
        assert len(collector.load(path).run_metadata.SerializeToString()) > 0
    except InvalidFileError as error:
        error_text = str(error)
    assert not error_text or (error_text.startswith(str(path)) and "\n" not in error_text)


@pytest.mark.parametrize("buffer_bytes", [16 << 10, 4 << 20])
def test_buffers_of_a_session_with_a_journal_are_small(gpu, tmp_path, buffer_bytes):
    """CUPTI holds a buffer back while a record in it is unfinished: what is in it is missing in the journal."""
    with collector.trace(journal=tmp_path / "j", buffer_bytes=buffer_bytes) as step:
        gpu.launch("kernel", count=2000)
        gpu.synchronize()
    assert step.ledger.complete
    statistics = gpu.statistics()
    assert statistics.bytes_completed / statistics.buffers_completed <= min(buffer_bytes, 256 << 10)


@pytest.mark.medium
def test_one_of_another_version(small):
    data, path = small
    path.write_bytes(data[: len(MAGIC)] + bytes([VERSION + 1]) + data[HEAD_BYTES:])
    with pytest.raises(
        InvalidFileError, match=f"a journal of version {VERSION + 1}, this program reads version {VERSION}"
    ):
        collector.load(path)
