"""The questions of scripts/gpu_questions.py, asked of the simulator: the answers are known there."""

import json
import signal
import subprocess
import sys

import pytest

from collector.testing.simulator.simulator_library import library_path

pytestmark = pytest.mark.simulator

LAUNCHES_AT_THE_END = 1000


@pytest.fixture
def ask(root, tmp_path):
    """Asks questions in the way that a user does; returns the answers by question and part, and the text."""

    def run(only, *options, status=0):
        folder = tmp_path / "answers"
        command = [sys.executable, str(root / "scripts" / "gpu_questions.py"), str(folder), "--simulated"]
        done = subprocess.run(
            [*command, "--only", only, *options], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        if status:
            return {}, done.stderr
        answers = json.loads((folder / "questions.json").read_text())
        text = (folder / "questions.md").read_text()
        for place in (str(root), "/site-packages", "/gpu-questions-"):
            assert place not in text, "the text goes into the repository"
        for name, answer in answers.items():
            for part, found in answer["parts"].items():
                assert found["end"] == "ended", (name, part, found)
                assert any("saw" in note for note in found["notes"]), (name, part)
            assert f"## {answer['title']}\n" in text
        return {
            name: {part: found["figures"] for part, found in answer["parts"].items()}
            for name, answer in answers.items()
        }, text

    return run


@pytest.mark.slow
def test_records_have_the_sizes_and_kinds_of_the_simulated_version(ask):
    answers, text = ask("machine,strides,kinds,records,subscribers,hardware_trace,device_name")
    assert answers["machine"][""]["cupti_api_version"] == 130001
    sizes = answers["strides"][""]
    assert sizes["differing"] == []
    assert sizes["seen"]["CONCURRENT_KERNEL"] == {"216": 10}
    assert "cuptiActivityGetStructSize: 59 of 11 (API_NOT_IMPLEMENTED)" in text  # it came with 13.2
    assert {1, 2, 10, 39} < set(answers["kinds"]["with a context"]["accepted"])
    assert answers["kinds"]["with a context"] == answers["kinds"]["without a context"]
    assert answers["records"][""]["records"]["CONCURRENT_KERNEL"] == 10
    assert "managed memory: cuMemAllocManaged is not offered by this libcuda" in text
    assert answers["subscribers"][""]["accepted"] == [32]
    assert "the holder's name is 'CUPTI for gpu_questions'" in text
    assert "the holder's name is 'CUPTI for <not provided>'" in text
    assert "cuptiActivityEnableHWTrace is not offered by this libcupti" in text
    assert answers["device_name"][""]["records"] == 1


def lines_by_part(text):
    """The lines of a section of questions.md by the parts of the question."""
    found = {}
    for line in text.splitlines():
        if line.startswith("### "):
            found[line[4:]] = []
        elif (
            line.startswith("- ") and found and "it returned" not in line and "KernelNodeSetParams_v2: `no" not in line
        ):
            found[next(reversed(found))].append(line)
    return found


def callbacks_in(lines):
    return [line for line in lines if "`" in line]


@pytest.mark.slow
def test_callbacks_of_graphs_are_those_of_a_card(ask, root):
    answers, text = ask("graphs,driver_records")
    for boundary in ("disable and enable", "unsubscribe and subscribe", "flush only"):
        # Launches with kernels of their id, launches, kernels.
        assert answers["graphs"][f"sessions, {boundary}"] == {f"session {number}": [8, 8, 40] for number in (1, 2, 3)}
    section = text[text.index("## Callbacks and ids of CUDA graphs") :]
    measured = lines_by_part((root / "tests/data/card/graph_callbacks.md").read_text())
    answered = lines_by_part(section)
    for part, lines in measured.items():
        assert callbacks_in(answered[part]) == callbacks_in(lines), part
        # Records of different streams and graphs come in any order.
        assert sorted(answered[part]) == sorted(lines), part
    assert answers["driver_records"]["the kind"]["linked"] == 10
    assert answers["driver_records"]["the kind"]["kernels"] == 10


@pytest.mark.slow
def test_faults_and_ends_leave_what_the_simulator_has_recorded(ask):
    answers, text = ask("sticky,hang,endings,flush")
    # As on an H100 with 13.0.85: 200 kernels and the one that fails, without times.
    assert (answers["sticky"]["traced"]["kernels"], answers["sticky"]["traced"]["invalid"]) == (0, 201)
    assert "kernel records so far: 200 of empty_kernel, start 0, end 0, 1 of write_to, start 0, end 0" in text
    assert "kernels 3 of empty_kernel, 1 of spin, start 0, end 0" in text
    assert answers["sticky"]["raw"]["flush 0"] == answers["sticky"]["raw"]["flush 1"] == 0
    assert answers["hang"]["raw"]["unfinished"] == 1
    assert answers["hang"]["recorder"]["dumps"] == 1
    assert "running: spin" in text  # the recorder's own line
    assert text.count("1 activity was still running or waiting when the recording ended: no end is known") >= 2
    whole = [end for end, kernels in answers["endings"][""].items() if f"work {LAUNCHES_AT_THE_END}" in kernels]
    assert {f"driver API, {end}" for end in ("return", "exit", "_exit later", "abort later", "running")} <= set(whole)
    assert answers["endings"][""]["driver API, abort"] == "no trace"
    flushed = answers["flush"]
    # The calls are in the buffer of the kernel that runs.
    assert (flushed["one thread"]["calls_before"], flushed["one thread"]["calls_after"]) == (0, 0)
    assert flushed["two threads"]["requested"] == {"the thread that flushes": 1, "the other thread": 1}
    assert flushed["two threads"]["calls of the other thread, flush 0"] == 20
    failed = flushed["a failed kernel"]
    assert (failed["outstanding after flush 0"], failed["outstanding after flush 1"]) == (1, 0)
    assert "kernels 5 of empty_kernel, end 0, 1 of write_to, end 0" in text


@pytest.mark.slow
def test_graphs_fail_after_sessions_that_recorded_peer_copies(ask):
    answers, text = ask("peer_copies")
    failed = {part: figures["failed"] for part, figures in answers["peer_copies"].items()}
    assert failed == {
        "raw, MEMCPY": 0, "raw, MEMCPY and MEMCPY2": 5, "raw, MEMCPY2 and thread ids": 5,
        "collector, default kinds": 0, "collector, peer copies": 5,
    }  # fmt: skip
    where = "<CUresult.CUDA_ERROR_LAUNCH_FAILED: 719> after launch 0 of graph 0 in session 0"
    assert text.count(f"5 of 5 processes failed: 5 of {where}") == 3


@pytest.mark.slow
def test_threads_clocks_and_many_launches(ask):
    answers, _ = ask("threads,clocks,zero_stamps,ring")
    for part in ("off", "on"):
        assert answers["threads"][part]["records"]["CONCURRENT_KERNEL"] == 6000
        completed_by = answers["threads"][part]["completed_by"]  # by the thread that flushes, or before by the worker
        assert sum(completed_by.values()) == sum(answers["threads"][part]["requested_by"].values()) > 40
    clocks = answers["clocks"]["alone"]
    assert clocks["kernels"] == 2000
    assert abs(clocks["drift_CLOCK_REALTIME"]) < 1_000_000
    profiled = answers["clocks"]["after torch.profiler"]  # which is not run on the simulator
    assert profiled["rate"] == pytest.approx(1, abs=1e-3)
    assert profiled["durations"] == profiled["raw_durations"] == [100_000_000]
    assert profiled["events"] == pytest.approx(1e8, rel=0.5)
    assert profiled["kept_apart"] == {"early": 0, "late": 0, "invalid": 0}
    assert profiled["places"]["kernels in cuptiGetTimestamp"] == 1
    found = answers["zero_stamps"][""]
    assert (found["kernels"], found["zero"], found["reversed"]) == (found["launches"], 0, 0)
    ring = answers["ring"][""]
    assert ring["losses"] == []
    assert ring["invalid"] == 0
    # The parts that were removed had kernels and calls; one edge of the rest may lie between a call and its kernel.
    assert 0 < ring["kernels"] <= ring["launched"]
    assert abs(ring["kernels"] - ring["launches_seen"]) <= ring["cut"]
    assert (ring["kernels"] < ring["launched"]) == (ring["forgotten"] > 0)


@pytest.mark.slow
def test_ranges_name_kernels_and_streams(ask):
    answers, text = ask("stream_names,nvtx_cost,torch_memory")
    if "there are no NVTX headers here" in text:
        pytest.skip("NVTX's headers are not installed")
    assert answers["stream_names"]["collector"]["names"] == {"13": "compute", "14": "copies"}
    assert answers["stream_names"]["collector"]["kernels"] == {"13": 3, "14": 5}
    cost = answers["nvtx_cost"]
    assert cost["collector, handler"]["range"] > 10 * abs(cost["nothing"]["range"])
    assert cost["collector, handler"]["named"] == 4000


@pytest.mark.slow
def test_the_calls_of_an_annotation_have_a_cost(ask):
    answers, _ = ask("call_costs")
    assert len(answers["call_costs"]) == 3
    for part, found in answers["call_costs"].items():
        assert len(found) == 8, part
        assert 0 < found["stamp_1"] < found["range_1"], part


@pytest.mark.slow
def test_sessions_that_detach_at_their_end_follow_one_another(ask):
    answers, text = ask("detach")
    assert text.count("cuptiFinalize returned {'0 (SUCCESS)': 36}") == 1
    for part in ("again and again", "again and again, at the end of a call"):
        assert answers["detach"][part] == {"cycles": 5, "incomplete": 0}
    assert text.count("cuptiFinalize returned {'0 (SUCCESS)': 5}") == 2


@pytest.mark.slow
def test_every_libcupti_below_a_folder_is_tried(ask, tmp_path):
    folder = tmp_path / "libraries"
    (folder / "works").mkdir(parents=True)
    (folder / "broken").mkdir()
    (folder / "works" / "libcupti.so.13").symlink_to(library_path())
    (folder / "works" / "libcupti.so").symlink_to("libcupti.so.13")
    (folder / "broken" / "libcupti.so.12").write_bytes(b"no library")
    answers, text = ask("libraries", "--libraries", str(folder))
    figures = answers["libraries"][""]
    assert len(figures["worked"]) == 1
    assert figures["worked"][0].startswith("works/")
    assert len(figures["answers"]) == 3  # directly only where the collector's step fails
    assert figures["answers"]["broken/libcupti.so.12, raw"][0] == "ended with exit status 1"
    assert "file too short" in text


DIRECT = """
import sys
sys.path.insert(0, sys.argv[1])
from asked_card import Card
card = Card(True, None)
card.prepare()
card.cupti.subscribe()
card.cupti.collect("CONCURRENT_KERNEL", "DRIVER")
card.cupti.enable_function("Runtime", 165)
card.work()
before = card.cupti.requested_by.total()
assert card.cupti.outstanding > 0
assert card.leave() == []
assert card.cupti.outstanding == 0
card.work()
assert card.cupti.requested_by.total() == before, "a record was due"
card.cupti.subscribe()
"""


@pytest.mark.medium
def test_nothing_is_recorded_any_more_after_a_question(root, tmp_path):
    """The driver is called while a process ends, when there is no Python that could hand out a buffer."""
    done = subprocess.run(
        [sys.executable, "-c", DIRECT, str(root / "scripts" / "card")], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


BROKEN = """
import ctypes, os, signal, time
def crash(notes, card, part):
    notes.saw("before the crash")
    ctypes.string_at(0)
def hang(notes, card, part):
    notes.saw("before the hang")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    time.sleep(60)
def fail(notes, card, part):
    raise ValueError("the card is not at home")
def good(notes, card, part):
    notes.table(("a", "b"), [("1|2", 3)])
    notes.saw("an answer", number=7)
"""


@pytest.fixture
def asked_badly(root, tmp_path, monkeypatch):
    """scripts/gpu_questions.py, in a copy whose questions are those of BROKEN."""
    script = (root / "scripts" / "gpu_questions.py").read_text()
    start, end = script.index("QUESTIONS: dict"), script.index('"""Name -> question, in the order')
    asked = "{name: Question(name.title(), getattr(broken, name), 2) for name in ('crash', 'hang', 'fail', 'good')}"
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "card").symlink_to(root / "scripts" / "card")
    (folder / "broken.py").write_text(BROKEN)
    (folder / "gpu_questions.py").write_text(f"{script[:start]}import broken\nQUESTIONS = {asked}\n{script[end:]}")

    def run(*options):
        command = [sys.executable, str(folder / "gpu_questions.py"), str(tmp_path / "out"), *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
def test_a_question_that_crashes_hangs_or_raises_does_not_lose_the_rest(asked_badly, tmp_path):
    done = asked_badly()
    assert done.returncode == 0, done.stderr
    answers = json.loads((tmp_path / "out" / "questions.json").read_text())
    found = {name: answer["parts"][""] for name, answer in answers.items()}
    assert found["crash"]["end"] == f"died of {signal.SIGSEGV.name}"
    assert found["crash"]["notes"] == [{"saw": "before the crash", "figures": {}}]
    assert any("Segmentation fault" in line for line in found["crash"]["stderr"])
    assert found["hang"]["end"].startswith("did not end within 2 s, with the threads ")
    assert found["hang"]["notes"] == [{"saw": "before the hang", "figures": {}}]
    assert any("in hang" in line for line in found["hang"]["stderr"])
    assert found["fail"]["end"] == "ended with exit status 1"
    assert "ValueError: the card is not at home" in found["fail"]["stderr"]
    assert (found["good"]["end"], found["good"]["figures"]) == ("ended", {"number": 7})
    text = (tmp_path / "out" / "questions.md").read_text()
    assert "The process died of SIGSEGV. Its last lines on standard error:" in text
    assert "- before the hang" in text
    assert "| 1\\|2 | 3 |" in text


@pytest.mark.slow
def test_a_question_without_time_says_so(asked_badly, tmp_path):
    assert asked_badly("--seconds", "1").returncode == 0
    answers = json.loads((tmp_path / "out" / "questions.json").read_text())
    assert {answer["parts"][""]["end"] for answer in answers.values()} == {"was not started: no time was left"}


@pytest.mark.slow
def test_answers_join_those_of_an_earlier_call(ask):
    ask("machine")
    answers, text = ask("device_name,machine", "--without", "machine")
    assert list(answers) == ["machine", "device_name"]
    assert text.index("## The machine") < text.index("## The name pointer")


def test_what_the_design_depends_on_is_asked_first(load_script):
    names = list(load_script("gpu_questions").QUESTIONS)
    first = [
        "machine",
        "flush",
        "peer_copies",
        "hang",
        "sticky",
        "clocks",
        "threads",
        "call_costs",
        "detach",
        "graphs",
        "strides",
    ]
    assert names[:11] == first == list(load_script("gpu_report").FIRST_QUESTIONS)


@pytest.mark.medium
def test_an_unknown_question_is_named(ask):
    _, errors = ask("strides,weather", status=2)
    assert "no question weather; there are machine, flush," in errors
