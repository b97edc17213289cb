"""Programs of which only ranges are recorded: `collector run --capture-range`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from injected_programs import injected_environment, range_program, simulator_environment

import collector
from collector.formats.journal_format import read_ranges
from collector.runtime.extension import capture_library

pytestmark = [pytest.mark.simulator, pytest.mark.slow]


@pytest.fixture(scope="module")
def program() -> Path:
    return range_program()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "journals"
    made.mkdir()
    return made


def recorded(
    program: Path, folder: Path, words: str, capture_range: str = "cudaProfilerApi", status: int = 7, **variables: str
) -> collector.Step:
    """What a program that does as the words say leaves, if only ranges of it are recorded."""
    environment = injected_environment(folder, COLLECTOR_RUN_RANGE=capture_range, **variables)
    if capture_range.startswith("nvtx:"):
        environment["NVTX_INJECTION64_PATH"] = str(capture_library())
    done = subprocess.run([program, *words.split()], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    (journal,) = folder.iterdir()
    return collector.load(journal)


def kernels(step: collector.Step) -> dict[str, int]:
    names = [kernel.name for kernel in step.recording.kernels]
    return {name: names.count(name) for name in dict.fromkeys(names)}


def ranges_of(step: collector.Step) -> tuple[int, int]:
    return step.ledger.capture_ranges_seen, step.ledger.capture_ranges_recorded


@pytest.mark.parametrize("function", ["", "runtime-"])
def test_what_is_between_start_and_stop_is_recorded(program, folder, function):
    words = f"init launch:20:before sync {function}start launch:30:inside {function}stop launch:40:after sync"
    step = recorded(program, folder, words)
    assert kernels(step) == {"inside": 30}
    assert ranges_of(step) == (1, 1)
    assert step.ledger.complete
    assert step.ledger.launches_seen == step.ledger.launches_matched == 30
    clock = step.recording.clock
    assert clock.cupti_start_ns <= int(step.recording.api_calls.start_ns.min())
    assert clock.cupti_stop_ns >= int(step.recording.kernels.end_ns.max())


def test_a_range_without_an_end_lasts_to_the_end_of_the_program(program, folder):
    step = recorded(program, folder, "init launch:5:before start launch:30:inside sync")
    assert kernels(step) == {"inside": 30}
    assert step.ledger.complete


def test_a_second_start_and_a_second_stop_change_nothing(program, folder):
    words = "init stop start launch:1:inside start launch:2:inside stop launch:4:outside stop launch:8:outside sync"
    step = recorded(program, folder, words)
    assert kernels(step) == {"inside": 3}
    assert ranges_of(step) == (1, 1)


def test_work_that_runs_on_after_its_range_is_recorded_and_what_is_launched_then_is_not(program, folder):
    """The simulated device is behind: its work of the range ends long after the range does."""
    words = "fault:lost_when_disabled init start launch:2000:inside stop sleep:1500 launch:500:outside sync sleep:300"
    step = recorded(program, folder, words)
    assert kernels(step) == {"inside": 2000}
    assert step.ledger.complete
    assert int(step.recording.kernels.end_ns.max()) > int(step.recording.api_calls.end_ns.max())


def test_each_range_has_its_own_work_though_that_of_others_runs_meanwhile(program, folder):
    words = "init " + "start launch:200:inside stop launch:200:outside " * 3 + "sync"
    step = recorded(program, folder, words)
    assert ranges_of(step) == (3, 3)
    assert kernels(step) == {"inside": 600}
    ranges = read_ranges(step)
    assert [kernels(each) for each in ranges] == [{"inside": 200}] * 3
    assert [each.ledger.complete for each in ranges] == [True] * 3
    assert step.ledger.decode_cpu_ns > 0
    assert [each.ledger.decode_cpu_ns for each in ranges] == [0] * 3  # how much of it each took is not known
    starts = [each.recording.clock.cupti_start_ns for each in ranges]
    assert starts == sorted(set(starts))
    assert [each.recording.clock.wall_start_ns - starts[0] for each in ranges] == pytest.approx(
        [start - starts[0] + ranges[0].recording.clock.wall_start_ns - starts[0] for start in starts], abs=1000
    )


def test_the_first_ranges_alone(program, folder):
    words = "init " + "start launch:10:inside stop sleep:700 " * 3 + "launch:10:outside sync"
    step = recorded(program, folder, words, COLLECTOR_RUN_MOST_RANGES="2")
    assert kernels(step) == {"inside": 20}
    assert step.ledger.capture_ranges_recorded == 2
    assert step.ledger.complete


@pytest.mark.parametrize("most", ["1", ""], ids=["it is not recorded", "it is recorded"])
def test_work_that_runs_on_when_the_next_range_begins_is_recorded(program, folder, most):
    words = "fault:lost_when_disabled init start launch:2000:inside stop start launch:500:next stop sync sleep:1500"
    step = recorded(program, folder, words, **({"COLLECTOR_RUN_MOST_RANGES": most} if most else {}))
    assert kernels(step) == {"inside": 2000} | ({} if most else {"next": 500})
    assert ranges_of(step) == ((2, 1) if most else (2, 2))
    assert step.ledger.complete


def test_work_that_runs_on_when_the_next_range_cannot_be_recorded_is_recorded(program, folder):
    words = (
        "fault:lost_when_disabled init start launch:2000:first stop "
        "fail:cuptiActivityEnable start launch:500:second stop sync sleep:1500 start launch:5:third stop sync sleep:700"
    )
    step = recorded(program, folder, words)
    assert kernels(step) == {"first": 2000, "third": 5}
    assert ranges_of(step) == (3, 2)
    assert step.ledger.complete


@pytest.mark.parametrize("next_range", ["", "driver.cuProfilerStart(); launch(b'next', 5); driver.cuProfilerStop()"])
def test_after_the_last_range_the_program_is_not_recorded_any_more(folder, next_range):
    """Another tool, or a trace of the program, may follow."""
    code = f"""
import collector
driver.cuProfilerStart()
launch(b"inside", 200)
driver.cuProfilerStop()
{next_range}
driver.cuCtxSynchronize()
from collector import _native
while _native.is_active():  # the test's time limit ends the wait
    time.sleep(0.05)
with collector.trace(strict=True) as later:
    launch(b"later", 3)
print(len(later.kernels))
"""
    variables = {"COLLECTOR_RUN_RANGE": "cudaProfilerApi", "COLLECTOR_RUN_MOST_RANGES": "1"}
    assert run_python(folder, code, **variables) == ["3"]
    step = recording_in(folder)
    assert kernels(step) == {"inside": 200}
    assert (step.ledger.complete, step.ledger.interrupted) == (True, 0)


def test_a_killed_program_leaves_its_ranges(program, folder):
    words = "init launch:7:before start launch:30:inside stop sync sleep:1500 start launch:5:last sync sleep:1500 kill"
    step = recorded(program, folder, words, status=-9)
    assert kernels(step) == {"inside": 30, "last": 5}
    assert ranges_of(step) == (2, 2)
    assert step.ledger.interrupted == 1


def test_ranges_in_segments(program, folder):
    """The oldest segments are removed; what is left is the work of later ranges."""
    words = "init " + "start launch:3000:inside stop launch:100:outside sync sleep:700 " * 6
    step = recorded(program, folder, words, COLLECTOR_RUN_MAX_BYTES="40000")
    assert set(kernels(step)) == {"inside"}
    assert 0 < kernels(step)["inside"] < 18000
    assert step.ledger.rows_forgotten > 0
    assert step.ledger.capture_ranges_recorded == 6


@pytest.mark.parametrize("capture_range", ["cudaProfilerApi", "nvtx:train"])
def test_a_program_without_the_range(program, folder, capture_range):
    step = recorded(program, folder, "init push:other launch:20:before pop sync", capture_range)
    assert kernels(step) == {}
    assert len(step.recording.api_calls) == 0
    assert ranges_of(step) == (0, 0)


@pytest.mark.parametrize(
    ("capture_range", "words"),
    [
        ("nvtx:train", "push:train launch:3:inside pop"),
        ("nvtx:train", "wide:train launch:3:inside pop"),
        ("nvtx:train", "begin:train launch:3:inside end"),
        ("nvtx:train@lib", "push@lib:train launch:3:inside pop@lib"),
        ("nvtx:train@*", "push@lib:train launch:1:inside pop@lib push:train launch:2:inside pop"),
        (r"nvtx:a\@b", "push:a@b launch:3:inside pop"),
        ("nvtx:train", "push:outer push:train push:train launch:1:inside pop launch:2:inside pop launch:9:no pop"),
        ("nvtx:train", "push:train push@lib:x launch:1:inside pop launch:9:no pop@lib push:train launch:2:inside pop"),
    ],
    ids=["pushed", "wide", "started", "domain", "any domain", "an at sign", "nested", "interleaved domains"],
)
def test_nvtx_ranges(program, folder, capture_range, words):
    others = "push:other launch:5:no pop push@strange:train launch:5:no pop@strange" if "*" not in capture_range else ""
    step = recorded(program, folder, f"init launch:4:no {others} {words} launch:6:no sync", capture_range)
    assert kernels(step) == {"inside": 3}
    assert ranges_of(step) == (1 + words.count("pop@lib push:train"),) * 2
    assert step.ledger.complete


def test_a_range_that_begins_before_cuda_does(program, folder):
    words = "push:train init launch:3:inside pop launch:4:outside sync"
    assert kernels(recorded(program, folder, words, "nvtx:train")) == {"inside": 3}


def test_a_thread_that_ends_inside_its_range_ends_it(program, folder):
    step = recorded(program, folder, "init thread:train launch:3:outside sync", "nvtx:train")
    assert (kernels(step), ranges_of(step)) == ({}, (1, 1))


@pytest.mark.parametrize("words", ["forks:200 init", "init forks:200"], ids=["before CUDA", "after"])
def test_forked_children_push_ranges_while_a_thread_of_the_parent_did(program, folder, words):
    """A lock that the other thread held at the fork is never released in the child."""
    step = recorded(program, folder, f"{words} push:train launch:3:inside pop launch:4:outside sync", "nvtx:train")
    assert (kernels(step), ranges_of(step)) == ({"inside": 3}, (1, 1))


def test_annotations_around_a_range_name_its_work(program, folder):
    words = "init push:outer launch:4:no push:train push:inner launch:3:inside pop pop launch:4:no pop sync"
    step = recorded(program, folder, words, "nvtx:train")
    assert {each.annotation for each in step.recording.kernels} == {"outer/train/inner"}
    assert int(step.recording.annotations.start_ns.min()) == step.recording.clock.cupti_start_ns


@pytest.mark.parametrize(("name", "value"), [("RANGE", "cudaProfiler"), ("RANGE", "nvtx:"), ("MOST_RANGES", "few")])
def test_a_range_that_cannot_be_read_is_one_line(program, folder, name, value):
    variables = {"COLLECTOR_RUN_RANGE": "cudaProfilerApi", f"COLLECTOR_RUN_{name}": value}
    done = subprocess.run(
        [program, "init"], env=injected_environment(folder, **variables), capture_output=True, text=True, check=False
    )
    assert done.returncode == 7
    (line,) = done.stderr.splitlines()
    assert f"COLLECTOR_RUN_{name}" in line


CUDA_PROGRAM = """
import ctypes, os, time
driver = ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"])
driver.cuInit(0)
context = ctypes.c_void_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
def launch(name, count):
    function = ctypes.c_char_p()
    driver.cuModuleGetFunction(ctypes.byref(function), None, name)
    for _ in range(count):
        driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, None, None, None)
"""
"""A Python program that calls the driver alone."""


def run_python(folder: Path, code: str, **variables: str) -> list[str]:
    """The lines that such a program writes, of which ranges are recorded."""
    environment = injected_environment(folder, PYTHONWARNINGS="ignore", **variables)
    command = [sys.executable, "-c", CUDA_PROGRAM + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def recording_in(folder: Path) -> collector.Step:
    (journal,) = folder.iterdir()
    return collector.load(journal)


def test_a_budget_that_is_exceeded_between_ranges_costs_later_ones_no_nodes_of_graphs(folder):
    """The cost of a recording that records nothing just then is not that of graphs."""
    code = """
from collector.testing.simulator.simulated_graph import Capture
from collector.testing.simulator.simulator_library import load
with Capture(load(os.environ["COLLECTOR_LIBCUDA"]), 7) as graph:
    launch(b"node", 3)
executable = graph.instantiate()
for pause_s in (3.5, 0):
    driver.cuProfilerStart()
    executable.launch()
    driver.cuCtxSynchronize()
    driver.cuProfilerStop()
    time.sleep(pause_s)
"""
    assert run_python(folder, code, COLLECTOR_RUN_RANGE="cudaProfilerApi", COLLECTOR_RUN_BUDGET="1") == []
    assert kernels(recording_in(folder)) == {"node": 6}


def test_a_time_in_the_future_does_not_lengthen_a_range(folder):
    code = """
driver.cuProfilerStart()
driver.sim_inject(b"shifted_timestamps", 1, 0, ctypes.c_int64(3_600_000_000_000), b"")
launch(b"inside", 3)
driver.cuCtxSynchronize()
driver.cuProfilerStop()
driver.sim_advance(1_000_000_000)
launch(b"outside", 1)
driver.cuCtxSynchronize()
"""
    assert run_python(folder, code, COLLECTOR_RUN_RANGE="cudaProfilerApi") == []
    step = recording_in(folder)
    assert kernels(step) == {"inside": 2}
    assert step.ledger.late == 1
    assert step.recording.clock.window_ns < 1_000_000_000


def test_a_step_of_the_program_outside_its_ranges_says_why_it_is_not_traced(folder):
    code = """
import collector
with collector.trace() as outside:
    pass
driver.cuProfilerStart()
with collector.trace() as inside:
    launch(b"work", 1)
driver.cuProfilerStop()
print(outside.unavailable)
print(len(inside.kernels), inside.ledger.complete, inside.ledger.capture_ranges_recorded)
"""
    outside, inside = run_python(folder, code, COLLECTOR_RUN_RANGE="cudaProfilerApi")
    assert "`collector run --capture-range` records this process, and is outside its ranges" in outside
    assert inside == "1 True 0"


NVTX_PROGRAM = """
import collector
from tests.support.nvtx_copy import NvtxCopy, attributes
nvtx = NvtxCopy(os.environ["CUDA_INJECTION64_PATH"])
lib = nvtx.DomainCreateA(b"lib")
def launch_in(name):
    nvtx.RangePushA(name)
    nvtx.DomainRangePushEx(lib, attributes(name + b" of lib"))
    launch(b"work", 1)
    nvtx.DomainRangePop(lib)
    nvtx.RangePop()
    driver.cuCtxSynchronize()
"""
"""Its kernels are launched inside a range of the default domain and one of the domain `lib`."""


@pytest.mark.parametrize("nvtx", ["False", "['lib']", "True", "None"])
@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"COLLECTOR_RUN_NVTX": "lib"}, ["1 of lib", "2 of lib", "3 of lib"]),
        ({"COLLECTOR_RUN_RANGE": "nvtx:2"}, ["2/2 of lib"]),
        ({"COLLECTOR_RUN_RANGE": "nvtx:3"}, ["3/3 of lib"]),
    ],
    ids=["a domain", "the range in a step", "a range after a step"],
)
def test_a_step_of_the_program_does_not_choose_the_domains_of_the_recording(root, folder, nvtx, variables, names):
    code = f"""
launch_in(b"1")
with collector.trace(nvtx={nvtx}):
    launch_in(b"2")
launch_in(b"3")
"""
    assert run_python(folder, NVTX_PROGRAM + code, PYTHONPATH=str(root), **variables) == []
    step = recording_in(folder)
    assert step.recording.annotations_of(step.recording.kernels) == names
    assert step.ledger.complete


def run(cwd: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "collector", "run", *map(str, words)],
        env=simulator_environment(),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


TWO = ["init", "start", "launch:10:inside", "stop", "launch:5:outside", "start", "launch:20:inside", "stop", "sync"]


def test_the_ranges_are_steps_of_one_trace(program, tmp_path):
    done = run(tmp_path, "--capture-range", "cudaProfilerApi", "-o", "out.json", program, *TWO)
    assert done.returncode == 7
    assert done.stderr.count("10 launches, 10 kernels") == done.stderr.count("20 launches, 20 kernels") == 1
    assert "range 2" in done.stderr
    assert kernels(collector.load(tmp_path / "out.json")) == {"inside": 30}


@pytest.mark.parametrize("suffix", [".json", ".gpurec"])
def test_a_file_for_each_range(program, tmp_path, suffix):
    done = run(tmp_path, "-q", "--capture-range=cudaProfilerApi", "-o", f"r{{step}}{suffix}", program, *TWO)
    assert done.returncode == 7
    assert done.stderr.splitlines()[-1].endswith(f"r0{suffix}, r1{suffix}")
    counts = [kernels(collector.load(tmp_path / f"r{number}{suffix}")) for number in range(2)]
    assert counts == [{"inside": 10}, {"inside": 20}]


def test_of_many_files_the_first_and_the_last_are_named(program, tmp_path):
    words = "start launch:1:kernel sync stop " * 9
    done = run(
        tmp_path, "-q", "--capture-range=cudaProfilerApi", "-o", "{step}.gpurec", program, "init", *words.split()
    )
    assert (done.returncode, done.stderr) == (7, "collector: the trace is in 9 files, 0.gpurec to 8.gpurec\n")
    assert len(list(tmp_path.glob("*.gpurec"))) == 9


def test_the_ranges_are_one_step_in_a_format_for_one(program, tmp_path):
    run(tmp_path, "-q", "--capture-range=cudaProfilerApi", "-o", "out.gpurec", program, *TWO)
    step = collector.load(tmp_path / "out.gpurec")
    assert kernels(step) == {"inside": 30}
    assert ranges_of(step) == (2, 2)


def test_the_first_range_alone(program, tmp_path):
    options = ("-q", "--capture-range=cudaProfilerApi", "--capture-range-end=stop", "-o", "out.gpurec")
    assert run(tmp_path, *options, program, *TWO).returncode == 7
    assert kernels(collector.load(tmp_path / "out.gpurec")) == {"inside": 10}


def test_ranges_of_a_domain_need_no_other_option(program, tmp_path):
    words = ["init", "push@lib:train", "push:other", "launch:3:inside", "pop", "pop@lib", "sync"]
    assert run(tmp_path, "-q", "--capture-range=nvtx:train@lib", "-o", "out.gpurec", program, *words).returncode == 7
    step = collector.load(tmp_path / "out.gpurec")
    assert {each.annotation for each in step.recording.kernels} == {"train"}
    run(tmp_path, "-q", "--nvtx", "--capture-range=nvtx:train@lib", "-o", "all.gpurec", program, *words)
    named = collector.load(tmp_path / "all.gpurec").recording.kernels
    assert {each.annotation for each in named} == {"train/other"}


@pytest.mark.parametrize(
    ("capture_range", "opening"),
    [
        ("cudaProfilerApi", "a call of cudaProfilerStart"),
        ("nvtx:x", "an NVTX range 'x' in the default domain"),
        ("nvtx:x@lib", "an NVTX range 'x' in the domain 'lib'"),
        ("nvtx:x@*", "an NVTX range 'x' in any domain"),
    ],
)
def test_a_program_that_opens_no_range_gets_a_remedy(program, tmp_path, capture_range, opening):
    words = ("init", "launch:3:outside", "sync")
    done = run(tmp_path, f"--capture-range={capture_range}", "-o", "out.json", program, *words)
    assert (done.returncode, done.stdout) == (7, "")
    (line,) = done.stderr.splitlines()
    assert f"no range was recorded, and there is no trace: the program never made {opening}." in line
    assert "leave --capture-range out" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--capture-range=nothing"], "names no range"),
        (["--capture-range=nvtx:"], "names no range"),
        (["--capture-range=nvtx:a@b,c"], "comma"),
        (["--capture-range=cudaProfilerApi", "--capture-range-end=later"], "not an end of ranges"),
        (["--capture-range=cudaProfilerApi", "--capture-range-end=repeat:0"], "not an end of ranges"),
        (["--capture-range-end=stop"], "without --capture-range"),
        (["--capture-range=cudaProfilerApi", "--delay=1"], "--delay"),
    ],
)
def test_bad_ranges_are_one_line_and_nothing_runs(tmp_path, words, message):
    done = run(tmp_path, *words, sys.executable, "-c", "open('ran', 'w')")
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("chosen", "absent"), [("default,lib", None), ("lib,typo,typo,other", "typo, other")])
def test_domains_that_were_chosen_and_never_made_are_named(program, folder, chosen, absent):
    words = "init push@lib:outer launch:20:kernel pop@lib sync"
    step = recorded(program, folder, words, "", COLLECTOR_RUN_NVTX=chosen, NVTX_INJECTION64_PATH=str(capture_library()))
    assert kernels(step) == {"kernel": 20}
    assert step.recording.environment.get("nvtx_absent") == absent
    assert step.ledger.source_counters.get("nvtx_domains_absent", 0) == (2 if absent else 0)
    assert step.ledger.complete == (not absent)
