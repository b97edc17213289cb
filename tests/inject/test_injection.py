"""The library that the driver loads into programs which import and link nothing of ours, whatever way they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from injected_programs import injected_environment, launching_program

import collector
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

NOT_ENDED = "this is the journal of a step that had not ended: records that had not reached it are missing"
FLUSHED = {"WAIT_MS": "1500"}
"""The program waits until its journal must have been written before it ends without warning."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "journals"
    made.mkdir()
    return made


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launching_program(), *arguments],
        env=injected_environment(folder, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def recordings(folder: Path) -> list[Recording]:
    return [collector.load(path).recording for path in sorted(folder.iterdir())]


def kernels(recording: Recording) -> dict[str, int]:
    names = [kernel.name for kernel in recording.kernels]
    return {name: names.count(name) for name in dict.fromkeys(names)}


@pytest.mark.parametrize("end", ["exit", "quick_exit", "fork"])
def test_a_program_that_ends_well_leaves_all_its_records(folder, end):
    done = run(folder, end)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 100}
    assert recording.ledger.complete
    assert recording.ledger.launches_matched == recording.ledger.launches_seen == 100
    assert recording.environment["devices"] == {0: "Simulated GPU"}
    assert recording.clock.cupti_stop_ns >= int(recording.kernels.end_ns.max())


def test_a_program_that_loads_its_driver_leaves_all_its_records(folder):
    """As a program does that has the runtime library linked statically."""
    program = launching_program(is_linked=False)
    done = subprocess.run([program], env=injected_environment(folder), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 100}
    assert recording.ledger.complete


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT CAN MAKE A PROGRAM OF ANOTHER USER")
@pytest.mark.skipif("COLLECTOR_SANITIZED" in os.environ, reason="a set-uid program does not load a sanitizer's runtime")
def test_a_program_of_another_user_is_not_touched(folder):
    """A set-uid program: neither the driver nor the library of ours trusts the variables of whoever started it."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        program = Path(shutil.copy(launching_program(), place))
        os.chown(program, 65534, -1)
        program.chmod(0o4755)
        done = subprocess.run([program], env=injected_environment(folder), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("end", "status"), [("_exit", 7), ("abort", -signal.SIGABRT), ("kill", -signal.SIGKILL)], ids=str
)
def test_a_program_that_ends_without_warning_leaves_what_the_journal_has(folder, end, status):
    done = run(folder, end, **FLUSHED)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 100}
    assert recording.ledger.losses() == [NOT_ENDED]


def test_a_line_that_nobody_reads_does_not_end_the_program(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        environment = injected_environment(tmp_path / "not there")
        done = subprocess.run([launching_program(), "exit"], env=environment, stderr=writer, check=False)
        assert done.returncode == 7
    finally:
        os.close(writer)


def test_work_that_the_program_does_not_wait_for_is_missing_and_counted(folder):
    """The end of the collector waits for no kernel, because the program does not either."""
    assert run(folder, "unsynchronized").returncode == 7
    (recording,) = recordings(folder)
    assert kernels(recording)["work"] == 100
    assert recording.ledger.losses() != []
    assert recording.ledger.interrupted == 0


def test_a_child_that_is_executed_has_a_journal_of_its_own(folder):
    assert run(folder, "fork-exec").returncode == 7
    assert [kernels(each) for each in sorted(recordings(folder), key=lambda each: -len(each.kernels))] == [
        {"work": 100},
        {"child_work": 30},
    ]


def test_a_program_that_executes_another_leaves_two_journals(folder):
    assert run(folder, "exec").returncode == 7
    first, second = sorted(folder.iterdir(), key=lambda path: len(path.name))
    assert second.stem == f"{first.stem}.2"
    assert collector.load(first).ledger.losses() == [NOT_ENDED]
    assert kernels(collector.load(second).recording) == {"child_work": 30}


def test_threads_that_launch_until_the_end(folder):
    done = run(folder, "threads")
    assert (done.returncode, done.stderr) == (7, "")
    (recording,) = recordings(folder)
    assert kernels(recording)["work"] == 100
    assert kernels(recording)["thread_work"] > 0
    assert recording.ledger.interrupted == 0


def test_a_program_that_closes_all_files_finds_nothing_of_ours_in_its_own(folder, tmp_path):
    own = tmp_path / "own"
    done = run(folder, "close-files", "100", str(own))
    assert (done.returncode, done.stderr) == (7, "")
    assert own.read_bytes() == b""
    assert kernels(*recordings(folder)) == {"work": 100}
    assert recordings(folder)[0].ledger.complete


@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("variables", [{}, {"COLLECTOR_RUN_MAX_BYTES": str(1 << 20)}], ids=["file", "segments"])
def test_no_file_of_ours_becomes_standard_input_or_output(folder, closed, variables):
    """The program starts without them, as with ``>&-`` of a shell, and writes all the same."""

    def close_files() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        [launching_program(), "print"],
        env=injected_environment(folder, COLLECTOR_LISTEN="1", **variables),
        preexec_fn=close_files,
        check=False,
    )
    assert done.returncode == 7  # 74: one of them is open; 75: a file that the program opens does not get its number
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 100}
    assert recording.ledger.complete


def test_a_program_without_cuda_is_not_touched(folder):
    assert run(folder, "no-cuda").returncode == 5
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "cause"),
    [
        ({"COLLECTOR_RUN_FOLDER": "/nowhere/at/all"}, "No such file or directory"),
        ({"COLLECTOR_RUN_FOLDER": "/proc"}, "cannot be written"),
        ({"COLLECTOR_RUN_FOLDER": ""}, "Use `collector run`"),
        ({"COLLECTOR_RUN_KINDS": "nonsense"}, "nonsense"),
        ({"COLLECTOR_RUN_KINDS": ""}, "COLLECTOR_RUN_KINDS"),
        ({"COLLECTOR_RUN_DELAY_MS": "soon"}, "COLLECTOR_RUN_DELAY_MS"),
        ({"COLLECTOR_LIBCUPTI": "/nowhere/libcupti.so"}, "/nowhere/libcupti.so"),
    ],
    ids=["no folder", "unwritable", "unset", "kind", "no kinds", "delay", "no libcupti"],
)
def test_a_program_that_cannot_be_traced_runs_all_the_same(folder, variables, cause):
    done = run(folder, "exit", **variables)
    assert (done.returncode, done.stdout) == (7, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("collector: process ")
    assert "is not traced: " in line
    assert cause in line
    assert list(folder.iterdir()) == []


def test_the_journal_states_the_variables_that_were_asked_for(folder):
    wanted = {"COLLECTOR_RUN_VARIABLES": "RANK,ABSENT", "RANK": "3", "SECRET": "do not tell"}
    assert run(folder, "exit", **wanted).returncode == 7
    (journal,) = folder.iterdir()
    step = collector.load(journal)
    assert step.rank == 3
    assert step.process is not None
    assert step.process.variables == {"RANK": "3"}
    assert journal.name.endswith(f"-{step.process.process_id}.journal")
    assert b"do not tell" not in journal.read_bytes()


def test_a_beginning_and_an_end_at_given_times(folder):
    """Nothing is launched after 400 ms; the program itself lasts longer."""
    before = run(folder, "_exit", COLLECTOR_RUN_DELAY_MS="400", WAIT_MS="1000")
    assert before.returncode == 7
    (recording,) = recordings(folder)
    assert kernels(recording) == {}


def test_an_end_at_a_given_time_is_an_end(folder):
    done = run(folder, "_exit", COLLECTOR_RUN_DURATION_MS="300", WAIT_MS="1500")
    assert (done.returncode, done.stderr) == (7, "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 100}
    assert recording.ledger.complete


DRIVER = """
import ctypes, os, sys, warnings
def launch(name, count):
    function = ctypes.c_char_p()
    driver.cuModuleGetFunction(ctypes.byref(function), None, name)
    for _ in range(count):
        assert driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, None, None, None) == 0
    assert driver.cuCtxSynchronize() == 0
def initialise():
    global driver, context
    driver, context = ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"]), ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
"""
PYTHON = f"""{DRIVER}
initialise()
launch(b"work", 10)
"""
"""A Python program that knows nothing of the collector, up to the launches of ten kernels."""


def run_python(folder: Path, program: str, before: str = PYTHON, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + program],
        env=injected_environment(folder, **variables) | {"PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_program_that_exits(folder):
    done = run_python(folder, "launch(b'more', 5); sys.exit(9)")
    assert (done.returncode, done.stderr) == (9, "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 10, "more": 5}
    assert recording.ledger.complete


def test_a_step_of_a_recorded_program_is_a_part_of_the_recording(folder):
    done = run_python(
        folder,
        """
import collector
with collector.annotate("outer"):
    launch(b"before", 3)
    with collector.trace(strict=True) as step:
        with collector.annotate("inner", flops=8):
            launch(b"inside", 5)
        launch(b"inside_outer", 2)
        with collector.trace() as second:
            launch(b"inside_outer", 1)
    launch(b"after", 5)
for kernel in step.recording.kernels:
    print(kernel.name, kernel.annotation)
print(step.ledger.complete, step.ledger.launches_seen, step.ledger.launches_matched, step.ledger.losses())
print([each.flops for each in step.recording.details], second.unavailable)
names = [step.recording.strings[number] for number in step.recording.api_calls.name_id]
print({name: names.count(name) for name in names})
with collector.trace(strict=True) as empty:
    pass
print(len(empty.recording.kernels), len(empty.recording.api_calls), empty.ledger.losses())
""",
    )
    assert done.returncode == 0, done.stderr
    *kernel_lines, ledger, details, calls, empty = done.stdout.splitlines()
    assert kernel_lines == ["inside outer/inner"] * 5 + ["inside_outer outer"] * 3
    assert ledger == "True 8 8 []"
    assert details.startswith("[8] another session is already tracing in this process")
    assert calls == "{'cuLaunchKernel': 8, 'cuCtxSynchronize': 3}"
    nothing = "nothing was recorded: the traced process had no activity of the recorded kinds"
    assert empty == f"0 0 ['{nothing}']"
    assert done.stderr.count("CollectorWarning") == 1  # of the second one
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 10, "before": 3, "inside": 5, "inside_outer": 3, "after": 5}
    assert recording.annotations_of(recording.kernels)[10:] == ["outer"] * 3 + ["outer/inner"] * 5 + ["outer"] * 8
    assert recording.ledger.complete


IN_A_STEP = """
import collector
with collector.trace(strict=True) as step:
    initialise()
    launch(b"inside", 5)
print(len(step.kernels), step.ledger.losses())
launch(b"after", 3)
"""


def test_a_step_in_which_cuda_is_initialised_is_a_part_of_the_recording(folder):
    done = run_python(folder, IN_A_STEP, before=DRIVER)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 []\n", "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"inside": 5, "after": 3}
    assert recording.ledger.complete


def test_a_recording_without_the_drivers_tool_leaves_steps_alone(folder):
    done = run_python(folder, IN_A_STEP, before=f"{DRIVER}del os.environ['CUDA_INJECTION64_PATH']\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 []\n", "")
    assert list(folder.iterdir()) == []


def test_a_child_that_initialises_cuda_after_a_step_of_its_parent_is_named(folder):
    program = """
import collector
with collector.trace(strict=True):
    pass
child = os.fork()
initialise()
launch(b"child" if child == 0 else b"parent", 5)
if child != 0:
    print(os.waitpid(child, 0)[1])
"""
    done = run_python(folder, program, before=DRIVER)
    assert (done.returncode, done.stdout) == (0, "0\n")
    (line,) = done.stderr.splitlines()
    assert "is not traced: this process was forked from one that had used CUDA" in line
    (recording,) = recordings(folder)
    assert kernels(recording) == {"parent": 5}


def test_a_step_before_there_is_a_driver_does_not_prevent_the_recording(folder):
    program = """
import collector
driver_path = os.environ.pop("COLLECTOR_LIBCUDA")
for _ in range(2):
    os.environ["COLLECTOR_LIBCUDA"] = "/nowhere/libcuda.so.1"
    with collector.trace() as step:
        pass
    print("/nowhere/libcuda.so.1" in step.unavailable)
os.environ["COLLECTOR_LIBCUDA"] = driver_path
initialise()
launch(b"later", 5)
"""
    done = run_python(folder, program, before=DRIVER)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr
    assert "is not traced" not in done.stderr.replace("GPU activity is not traced", "")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"later": 5}


@pytest.mark.parametrize("opened", ["collector.trace()", "collector.record(keep='1min')"], ids=["trace", "record"])
def test_a_recording_that_is_due_while_a_session_is_open_begins_at_its_end(folder, tmp_path, opened):
    program = f"""
import time, collector
os.chdir({str(tmp_path)!r})
from collector import _native
with {opened} as session:
    initialise()
    launch(b"inside", 5)
    time.sleep(1)
while not _native.is_active():
    time.sleep(0.01)
launch(b"after", 3)
with collector.trace(strict=True) as step:
    launch(b"last", 2)
print(session.unavailable, len(step.kernels))
"""
    done = run_python(folder, program, before=DRIVER, COLLECTOR_RUN_DELAY_MS="100")
    assert (done.returncode, done.stdout) == (0, "None 2\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert "is traced only in part: " in line
    assert line.endswith(". The recording begins when that has ended")
    (recording,) = recordings(folder)
    assert kernels(recording) == {"after": 3, "last": 2}


def test_a_session_that_lasts_to_the_end_leaves_nothing_to_the_recording(folder):
    program = """
import collector, time
session = collector.trace().start()
initialise()
launch(b"inside", 5)
time.sleep(1)
"""
    done = run_python(folder, program, before=DRIVER, COLLECTOR_RUN_DELAY_MS="100")
    assert done.returncode == 0
    assert done.stderr.count("collector: process ") == 1, done.stderr
    assert all(kernels(recording) == {} for recording in recordings(folder))


def test_a_step_of_a_recorded_program_states_what_cupti_dropped_in_it(folder):
    done = run_python(
        folder,
        """
import collector
for number in range(3):
    with collector.trace(strict=True) as step:
        if number == 1:
            driver.sim_inject(b"dropped_record", ctypes.c_int64(5), ctypes.c_int64(0), ctypes.c_int64(0), b"")
        launch(b"inside", 5)
    print(len(step.kernels), step.ledger.records_dropped, step.ledger.complete)
""",
    )
    assert (done.returncode, done.stdout) == (0, "5 0 True\n0 5 False\n5 0 True\n"), done.stderr
    (recording,) = recordings(folder)
    assert (recording.ledger.records_dropped, recording.ledger.complete) == (5, False)


def test_work_that_outlasts_a_step_of_a_recorded_program_is_in_the_recording(folder):
    done = run_python(
        folder,
        """
import collector
outlasting = ctypes.c_char_p()
driver.cuModuleGetFunction(ctypes.byref(outlasting), None, b"outlasting")
with collector.trace(strict=True, synchronize=False) as step:
    for _ in range(100):
        driver.cuLaunchKernel(outlasting, 8, 1, 1, 64, 1, 1, 0, None, None, None)
print(len(step.kernels), step.ledger.buffers_held, step.ledger.complete)
driver.cuCtxSynchronize()
with collector.trace(strict=True) as step:
    launch(b"inside", 5)
print(len(step.kernels), step.ledger.buffers_held, step.ledger.complete)
""",
    )
    assert (done.returncode, done.stdout) == (0, "0 1 False\n5 0 True\n"), done.stderr
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 10, "outlasting": 100, "inside": 5}
    assert recording.ledger.complete


def test_steps_of_a_long_recording_are_what_was_launched_in_them(folder):
    """Buffers come back in the middle of steps and between them."""
    done = run_python(
        folder,
        """
import collector
wrong = []
for number in range(60):
    launch(b"between", 37 * number % 500)
    with collector.trace(strict=True) as step:
        launch(b"inside", number * 53 % 700)
    names = {kernel.name for kernel in step.recording.kernels}
    if len(step.kernels) != number * 53 % 700 or not names <= {"inside"} or not step.ledger.complete:
        wrong.append((number, len(step.kernels), names, step.ledger.losses()))
print(wrong)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    (recording,) = recordings(folder)
    assert recording.ledger.complete


def test_steps_of_a_profiler_hook_are_windows_of_the_recording(folder, tmp_path):
    done = run_python(
        folder,
        f"""
import collector
from collector.profiler import ProfilerHook
hook = ProfilerHook(schedule=collector.schedule(wait=1, warmup=1, active=1, repeat=2), output_dir={str(tmp_path)!r})
for number in range(8):
    hook.before_step(number)
    launch(b"step%d" % number, number + 1)
    written = hook.after_step(number)
    if written:
        print(written.name)
hook.close()
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "timeline-2.json\ntimeline-5.json\n", "")
    for number in (2, 5):
        names = [kernel.name for kernel in collector.load(tmp_path / f"timeline-{number}.json").kernels]
        assert names == [f"step{number}"] * (number + 1)
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 10} | {f"step{number}": number + 1 for number in range(8)}
    assert recording.ledger.complete


def test_a_recorder_in_a_recorded_program_is_refused(folder):
    done = run_python(folder, "import collector; print(collector.record(folder='nowhere').unavailable)")
    assert done.stdout == (
        "`collector run` records this process already, and its trace has all of it. Leave `collector.record` or "
        "`collector run` out\n"
    )
    assert done.stderr.count("CollectorWarning: nothing is recorded") == 1
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 10}


def test_a_step_after_the_end_of_the_recording_is_one_of_its_own(folder):
    program = """
import time
import collector
time.sleep(1)
with collector.trace(strict=True) as step:
    launch(b"later", 5)
print(len(step.kernels))
"""
    done = subprocess.run(
        [sys.executable, "-c", PYTHON + program],
        env=injected_environment(folder, COLLECTOR_RUN_DURATION_MS="300"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 10}


def test_annotations_of_a_recorded_program_need_no_session(folder):
    """Those from before CUDA's initialisation have details, too, which later details must not take the place of."""
    done = subprocess.run(
        [sys.executable, "-c", ANNOTATED + PYTHON.replace('launch(b"work", 10)', LAUNCHES)],
        env=injected_environment(folder) | {"PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (recording,) = recordings(folder)
    paths = recording.annotations_of(recording.kernels)
    assert list(zip((kernel.name for kernel in recording.kernels), paths, strict=True)) == [
        ("first", "before/conv"),
        ("second", "before"),
        ("third", "after"),
        ("fourth", "open at the end"),
    ]
    details = {
        recording.strings[name]: recording.details[number - 1].flops
        for name, number in zip(recording.annotations.name_id, recording.annotations.details_id, strict=True)
        if number
    }
    assert details == {"before/conv": 22, "after": 33}
    assert recording.ledger.complete
    assert (recording.annotations.end_ns <= recording.clock.cupti_stop_ns).all()


ANNOTATED = """
import collector
with collector.annotate("unrecorded", flops=11):
    pass
outer = collector.annotate("before")
outer.__enter__()
"""
LAUNCHES = """
outer.__exit__(None, None, None)
with collector.annotate("before"):
    with collector.annotate("conv", flops=22):
        launch(b"first", 1)
    launch(b"second", 1)
with collector.annotate("after", flops=33):
    launch(b"third", 1)
collector.annotate("open at the end").__enter__()
launch(b"fourth", 1)
"""


def test_memory_does_not_grow_with_what_is_recorded(folder):
    """A megabyte is 8,000 launches in the journal."""

    def peak_kilobytes(launches: int) -> int:
        with subprocess.Popen(
            [launching_program(), "exit", str(launches)], env=injected_environment(folder)
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 7
        return usage.ru_maxrss

    few, many = peak_kilobytes(200_000), peak_kilobytes(1_200_000)
    assert sorted(len(each.kernels) for each in recordings(folder)) == [200_000, 1_200_000]
    assert many - few < 40_000  # in memory the difference would be 290 MB


@pytest.mark.parametrize("limit", [4_000, 200_000])
def test_a_folder_that_becomes_full(folder, limit):
    """A file size limit stands for a full disk: the records up to it are kept, and the program runs on."""
    import resource

    done = subprocess.run(
        [launching_program(), "exit", "60000"],
        env=injected_environment(folder),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 7
    (line,) = done.stderr.splitlines()
    assert "File too large" in line
    if limit < 8_000:  # not even the description of the records has room
        assert "is not traced" in line
        assert list(folder.iterdir()) == []
        return
    (journal,) = folder.iterdir()
    assert journal.stat().st_size <= limit
    assert collector.load(journal).ledger.losses() != []


def test_a_step_of_a_library_that_cannot_be_flushed_is_not_traced(folder):
    """13.0.48: a flush while the program runs can crash."""
    done = subprocess.run(
        [sys.executable, "-c", UNFLUSHABLE],
        env=injected_environment(folder) | {"PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "`collector run` records this process, and its trace has this step" in done.stdout
    assert done.stderr.count("CollectorWarning") == 1
    (recording,) = recordings(folder)
    assert kernels(recording) == {"inside": 1}


UNFLUSHABLE = """
import ctypes, os
import collector
from collector.testing import SimulatedGpu
gpu = SimulatedGpu(api_version=130000).__enter__()  # to the exit of the process, where the recording ends
assert ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"]).cuInit(0) == 0
with collector.trace() as step:
    gpu.launch("inside")
    gpu.synchronize()
print(step.unavailable)
"""


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_ring_keeps_the_latest_records_and_says_what_it_removed(folder):
    """Zero rows are unaccounted for: those that are there and those that were removed are all that were launched."""
    limit = 2_000_000
    assert run(folder, "exit", "300000", COLLECTOR_RUN_MAX_BYTES=str(limit)).returncode == 7
    assert folder_bytes(folder) <= limit
    (recording,) = recordings(folder)
    ledger = recording.ledger
    assert 10_000 < len(recording.kernels) < 300_000
    assert ledger.losses() == []
    calls = {name: recording.api_calls.names().count(name) for name in set(recording.api_calls.names())}
    others = sum(count for name, count in calls.items() if name != "cuLaunchKernel")
    assert ledger.rows_forgotten + len(recording.kernels) + calls["cuLaunchKernel"] <= 600_000 + others + 5_000
    assert ledger.rows_forgotten + sum(len(getattr(recording, table)) for table in SCHEMA) >= 600_000
    ids = recording.kernels.correlation_id.astype("i8")
    assert (ids[1:] - ids[:-1] > 0).all()
    assert int(ids[-1]) > 300_000  # the latest ones


def test_segments_of_a_killed_program(folder):
    assert run(folder, "kill", "50000", COLLECTOR_RUN_MAX_BYTES="100000000", **FLUSHED).returncode == -signal.SIGKILL
    (recording,) = recordings(folder)
    assert kernels(recording) == {"work": 50_000}
    assert recording.ledger.losses() == [NOT_ENDED]
    assert recording.environment["devices"] == {0: "Simulated GPU"}


def test_a_step_in_a_ring_is_a_window_of_its_segments(folder):
    program = """
import collector
for number in range(20):
    launch(b"between", 500)
    with collector.trace(strict=True) as step:
        launch(b"inside", 700)
    assert {kernel.name for kernel in step.recording.kernels} == {"inside"}
    assert len(step.kernels) == 700 and step.ledger.complete, step.ledger.losses()
with collector.trace() as long:
    for _ in range(3000):
        launch(b"inside", 30)
print(long.unavailable)
"""
    done = subprocess.run(
        [sys.executable, "-c", PYTHON + program],
        env=injected_environment(folder, COLLECTOR_RUN_MAX_BYTES="200000"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "longer than the recording of this process keeps" in done.stdout
    assert recordings(folder)[0].ledger.losses() == []


@pytest.mark.parametrize("size", ["much", "-1"])
def test_an_impossible_size_is_one_line(folder, size):
    done = run(folder, "exit", COLLECTOR_RUN_MAX_BYTES=size)
    assert (done.returncode, done.stdout) == (7, "")
    (line,) = done.stderr.splitlines()
    assert "COLLECTOR_RUN_MAX_BYTES" in line


def test_each_launch_takes_few_bytes_of_the_file(folder):
    assert run(folder, "exit", "200000").returncode == 7
    (journal,) = folder.iterdir()
    assert journal.stat().st_size / 200_000 < 60
