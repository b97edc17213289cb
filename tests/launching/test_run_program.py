"""`collector run`: programs that know nothing of the collector, and notice nothing of it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from injected_programs import (
    INJECTION_VARIABLE,
    injected_environment,
    launching_program,
    simulator_environment,
)

import collector
from collector.launching.process_journals import traced_processes
from collector.recording.counter_rows import counters_over_time
from collector.runtime.extension import capture_library
from tests.support.signal_actions import restore_default

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

RUN = [sys.executable, "-m", "collector", "run"]
SUPPORT = Path(__file__).resolve().parents[1] / "support"


def run(*words: str | Path, cwd: Path, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *map(str, words)],
        env=simulator_environment() | variables,
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def kernel_names(path: Path) -> list[str]:
    return [kernel.name for kernel in collector.load(path).recording.kernels]


def processes_of(path: Path) -> set[str]:
    events = json.loads(path.read_text())["traceEvents"]
    return {event["args"]["name"] for event in events if event.get("name") == "process_name"}


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".pftrace", ".gpurec", ".pb", ".html"])
def test_one_process_in_each_format(tmp_path, suffix):
    done = run("-o", f"out{suffix}", launching_program(), "exit", "20", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "")
    assert "20 launches, 20 kernels" in done.stderr
    assert done.stderr.splitlines()[-1] == f"collector: the trace is in out{suffix}"
    assert [path.name for path in tmp_path.iterdir()] == [f"out{suffix}"]
    if suffix not in (".html", ".pftrace"):
        assert kernel_names(tmp_path / f"out{suffix}") == ["work"] * 20


def test_without_an_output_there_is_the_summary_alone(tmp_path):
    done = run(launching_program(), cwd=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (7, "")
    assert "Kernels: 100 of 1 name" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_input_and_output_are_the_programs(tmp_path):
    done = run("-q", launching_program(), "echo", "1", cwd=tmp_path, given="first\nsecond\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "first\nsecond\n", "")


@pytest.mark.parametrize("options", [[], ["-o", "out.gpurec"], ["--python"]])
def test_inherited_descriptors_are_the_programs(tmp_path, options):
    """The program has all that the command got, as with ``<(...)`` of a shell, and none that the command opened."""
    (tmp_path / "given").write_text("through the descriptor")
    given = os.open(tmp_path / "given", os.O_RDONLY)
    listing = "import os, sys; print(sorted(map(int, os.listdir('/proc/self/fd'))), os.pread(int(sys.argv[1]), 99, 0))"
    program = [sys.executable, "-c", listing, str(given)]
    alone, under_the_command = (
        subprocess.run(command, pass_fds=[given], env=simulator_environment(), cwd=tmp_path, capture_output=True)
        for command in (program, [*RUN, "-q", *options, "--", *program])
    )
    os.close(given)
    assert b"through the descriptor" in alone.stdout
    assert under_the_command.stdout == alone.stdout


@pytest.mark.parametrize(
    "locale", [{}, {"LANG": "C"}, {"LC_CTYPE": "C"}, {"LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}], ids=str
)
def test_the_locale_is_the_callers(tmp_path, locale):
    """Python gives itself another one where it finds that of C, in the environment that its children inherit."""
    kept = {name: value for name, value in simulator_environment().items() if not name.startswith(("LC_", "LANG"))}
    program = ["sh", "-c", "env | grep -E '^(LC_|LANG)'"]
    alone, under_the_command = (
        subprocess.run(command, env=kept | locale, cwd=tmp_path, capture_output=True, text=True, check=False)
        for command in (program, [*RUN, "-q", "--", *program])
    )
    assert under_the_command.stdout == alone.stdout == "".join(f"{name}={value}\n" for name, value in locale.items())


def test_the_terminal_is_the_programs(tmp_path):
    """A program that asks whether its output is a terminal gets the true answer."""
    ours, theirs = pty.openpty()
    program = "import os; print(os.isatty(0), os.isatty(1), os.tcgetpgrp(0) == os.getpgrp())"
    with subprocess.Popen(
        [*RUN, "-q", "--", sys.executable, "-c", program],
        stdin=theirs,
        stdout=theirs,
        env=simulator_environment(),
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(theirs),
    ) as process:
        assert process.wait() == 0
    assert os.read(ours, 1000).decode().split()[:3] == ["True", "True", "True"]
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("errors_on_terminal", [False, True])
def test_the_summary_has_colours_where_it_goes_to_a_terminal(tmp_path, errors_on_terminal):
    ours, theirs = pty.openpty()
    environment = {**simulator_environment(), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    errors = theirs if errors_on_terminal else subprocess.PIPE
    command = [*RUN, launching_program(), "exit", "20"]
    with subprocess.Popen(command, stdout=theirs, stderr=errors, env=environment, cwd=tmp_path) as process:
        text = os.read(ours, 10_000) if process.stderr is None else process.stderr.read()
    os.close(theirs)
    os.close(ours)
    assert b"20 launches" in text or errors_on_terminal
    assert rb"\x1b" not in text
    assert (b"\x1b[" in text) == errors_on_terminal


def _take_terminal(terminal: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize(("end", "status"), [("abort", -signal.SIGABRT), ("kill", -signal.SIGKILL)], ids=str)
def test_a_program_that_dies_by_a_signal(tmp_path, end, status):
    done = run("-o", "out.json", launching_program(), end, cwd=tmp_path, WAIT_MS="1500")
    assert done.returncode == status
    assert "had not ended" in done.stderr
    assert kernel_names(tmp_path / "out.json") == ["work"] * 100


def test_a_program_that_dies_at_once_is_named(tmp_path):
    done = run("-o", "out.json", launching_program(), "kill", cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert "has left no records: it ended by `_exit` or a signal within half a second" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_program_whose_first_records_find_no_room_is_named(tmp_path):
    """The limit is between the size of an empty journal and that of one with these launches."""
    limits = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000)); "
    program = ("--", sys.executable, "-c", f"{limits}os.execv(sys.argv[1], sys.argv[1:])")
    done = run("-q", *program, launching_program(), "exit", "20000", cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert " broke off while its first records were written (is the disk full?)\n" in done.stderr
    assert "_exit" not in done.stderr


def limited_program(limit: str, before: str = "", launches: int = 3000) -> tuple[str, ...]:
    """A program that sets a limit of its own to 0 after it has initialised CUDA, and launches kernels for 1.5 s."""
    init, launch, end = PYTHON.partition("assert driver.cuLaunchKernel")
    many = f"{launch}{end.partition('print')[0]}".replace("\n", "\n    ")
    limited = f"import resource, time\nresource.setrlimit(resource.{limit}, (0, 0))\n" if limit else ""
    work = f"for number in range({launches}):\n    {many}\n    time.sleep({1.5 / launches})\nsys.exit(4)\n"
    return "--", sys.executable, "-c", f"{init}{before}\n{limited}{work}"


def test_a_program_that_uses_up_its_files_has_a_whole_trace(tmp_path):
    """Its journal goes on in one file, in which all of it fits."""
    done = run("--max-size", "64KiB", "-o", "out.gpurec", *limited_program("RLIMIT_NOFILE"), cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "3,000 kernels, 0 copies, 0 memsets; nothing was lost" in done.stderr
    assert len(collector.load(tmp_path / "out.gpurec").kernels) == 3000


def test_a_program_that_uses_up_its_files_and_fills_its_journal_has_an_incomplete_trace(tmp_path):
    done = run(
        "--max-size", "64KiB", "-o", "out.gpurec", *limited_program("RLIMIT_NOFILE", launches=40_000), cwd=tmp_path
    )
    assert done.returncode == 4, done.stderr
    assert "its journal broke off (Too many open files)" in done.stderr
    assert "the recording broke off while its program went on" in done.stderr
    step = collector.load(tmp_path / "out.gpurec")
    assert 0 < len(step.kernels) < 40_000
    assert not step.ledger.complete


def test_a_program_that_closes_all_files_and_uses_up_others_is_told_that(tmp_path):
    closed = limited_program("RLIMIT_NOFILE", "import os; os.closerange(3, 1024)")
    done = run("-q", *closed, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    cause = "the program closed its file, which cannot be opened again: Too many open files"
    assert f"its journal broke off ({cause})\n" in done.stderr


def test_a_program_that_may_write_no_more_is_said_to_have_broken_off(tmp_path):
    """The description of the records has been written by then, and is all that the journal has."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    done = run("-q", *limited_program("", limit + "; import time"), cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "its journal broke off (File too large)" in done.stderr
    assert " broke off while its first records were written (is the disk full?)\n" in done.stderr
    assert "_exit" not in done.stderr


@pytest.mark.parametrize("options", [[], ["--max-size", "64KiB"]])
@pytest.mark.parametrize("is_made_again", [True, False])
def test_the_removal_of_the_output_folder_by_the_program_is_reported(tmp_path, options, is_made_again):
    (tmp_path / "out").mkdir()
    empty = "import shutil, time; shutil.rmtree('out'); " + ("os.mkdir('out')" if is_made_again else "")
    done = run("-o", "out/trace.json", *options, *limited_program("", empty), cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    broke_off, removed = done.stderr.splitlines()
    assert broke_off.endswith("its journal broke off (its file was removed)")
    assert removed.endswith(", the folder of the records, was removed while the program ran: there is no trace")
    assert list(tmp_path.iterdir()) == ([tmp_path / "out"] if is_made_again else [])


RUN_UNTIL_END = """
import os, time
open("ready", "w").close()
until = time.monotonic() + 600
while not os.path.exists("end") and time.monotonic() < until:
    time.sleep(0.01)
"""
"""The end of a program that runs on until the test is over."""
AWAIT_READY = "while [ ! -e ready ]; do sleep 0.05; done"


def test_a_process_without_records_that_runs_on_is_named(tmp_path):
    launch = PYTHON.partition("assert driver.cuLaunchKernel")[0]
    (tmp_path / "daemon.py").write_text(launch + RUN_UNTIL_END)
    program = f"{{ {sys.executable} daemon.py >/dev/null 2>&1 & }}; {AWAIT_READY}"
    try:
        done = run("-q", "--", "sh", "-c", program, cwd=tmp_path)
    finally:
        (tmp_path / "end").touch()
    assert " is still running, and has written no records so far\n" in done.stderr


@pytest.mark.parametrize("runs_on", [False, True])
def test_a_process_of_another_namespace_runs_if_it_is_found_there(tmp_path, runs_on):
    """It is process 1 there, and another process has this number here."""
    namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody make namespaces of processes")
    launch = PYTHON.partition("assert driver.cuLaunchKernel")[0]
    (tmp_path / "daemon.py").write_text(launch + (RUN_UNTIL_END if runs_on else "import os\n") + "os._exit(0)\n")
    daemon = " ".join([*namespace, sys.executable, "daemon.py"])
    program = f"{{ {daemon} >/dev/null 2>&1 & }}; {AWAIT_READY}" if runs_on else f"{daemon}; true"
    try:
        done = run("-q", "--", "sh", "-c", program, cwd=tmp_path)
    finally:
        (tmp_path / "end").touch()
    assert (" 1 is still running" in done.stderr) == runs_on, done.stderr


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGALRM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGRTMIN,
    ],
    ids=str,
)
def test_signals_reach_the_program(tmp_path, number):
    with subprocess.Popen(
        [*RUN, "-q", "-o", "out.json", launching_program(), "wait"],
        env=simulator_environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests may run under nohup
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(1.5)  # until the records have reached the journal
        process.send_signal(number)
        assert process.wait() == -number
    assert kernel_names(tmp_path / "out.json") == ["work"] * 100


COUNTING_SIGNALS = """
import os, signal, sys, time
number, got = int(sys.argv[1]), []
signal.signal(number, lambda *_: got.append(number))
print("ready", flush=True)
while not got:
    time.sleep(0.05)
time.sleep(0.5)
sys.exit(len(got))
"""
"""A program whose exit status is the number of times that it got a signal."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT], ids=str)
def test_a_signal_to_the_command_alone_reaches_the_program_once(tmp_path, number):
    with subprocess.Popen(
        [*RUN, "-q", "--", sys.executable, "-c", COUNTING_SIGNALS, str(int(number))],
        env=simulator_environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: restore_default(number),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait() == 1


@pytest.mark.parametrize(("number", "key"), [(signal.SIGINT, b"\x03"), (signal.SIGQUIT, b"\x1c")], ids=str)
def test_the_interrupt_of_a_terminal_is_the_programs_to_answer(tmp_path, number, key):
    """The program and the command get it; a program that handles it ends as it likes, and its trace is written."""
    ours, theirs = pty.openpty()

    def begin() -> None:
        _take_terminal(theirs)
        restore_default(number)

    with subprocess.Popen(
        [*RUN, "-q", "--", sys.executable, "-c", COUNTING_SIGNALS, str(int(number))],
        env=simulator_environment(),
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=begin,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.write(ours, key)
        assert process.wait() == 1
    os.close(theirs)
    os.close(ours)


STATE_OF_SIGNALS = (
    "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []),"
    " [line for line in open('/proc/self/status') if line.startswith(('SigBlk', 'SigIgn'))])"
)


@pytest.mark.parametrize(
    ("program", "status"),
    [("exit 5", 5), ("trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.1; done", 9)],
    ids=["end", "TERM"],
)
def test_signals_that_another_thread_of_the_command_gets_count_too(program, status):
    """While the command does not wait for signals, the kernel gives them to any thread that does not block them."""
    command = f"""
import os, subprocess, threading, time
from collector.launching.child_program import run_child
start = subprocess.Popen.__init__
def start_slowly(*words, **options):
    start(*words, **options)
    time.sleep(0.5)
subprocess.Popen.__init__ = start_slowly
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print(run_child(["sh", "-c", {program!r}], os.environ).status)
"""
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (str(status), 0), done.stderr


@pytest.mark.parametrize("blocked", [[], [signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1]], ids=["", "blocked"])
@pytest.mark.parametrize(
    "ignored", [[], [signal.SIGCHLD], [signal.SIGHUP, signal.SIGINT, signal.SIGALRM]], ids=["", "children", "stops"]
)
def test_ignored_and_blocked_signals_are_those_of_the_caller(tmp_path, blocked, ignored):
    def begin() -> None:
        for number in {signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGALRM}.difference(ignored):
            restore_default(number)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    program = [sys.executable, "-c", STATE_OF_SIGNALS]
    alone, under_the_command = (
        subprocess.run(words, env=simulator_environment(), cwd=tmp_path, capture_output=True, preexec_fn=begin)
        for words in (program, [*RUN, "-q", "--", *program])
    )
    assert b"SigIgn" in alone.stdout
    assert under_the_command.stdout == alone.stdout


def test_the_status_of_a_program_whose_caller_ignores_its_children(tmp_path):
    """The kernel then keeps no exit status of them."""
    done = subprocess.run(
        [*RUN, "-q", "-o", "out.json", launching_program()],
        env=simulator_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "collector: the trace is in out.json\n")
    assert kernel_names(tmp_path / "out.json") == ["work"] * 100


def test_a_shell_in_the_command_decides_about_broken_pipes(tmp_path):
    """Whether the caller ignores SIGPIPE and SIGXFSZ is lost when Python starts."""
    program = ["sh", "-c", 'trap \'\' PIPE XFSZ; exec "$0" -c "$1"', sys.executable, STATE_OF_SIGNALS]
    alone = subprocess.run(program, env=simulator_environment(), capture_output=True, text=True)
    done = run("-q", "--", *program, cwd=tmp_path)
    assert "SigIgn" in done.stdout
    assert done.stdout == alone.stdout


PYTHON = """
import ctypes, os, sys
driver = ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"])
assert driver.cuInit(0) == 0
context, function = ctypes.c_void_p(), ctypes.c_char_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
driver.cuModuleGetFunction(ctypes.byref(function), None, b"from_python")
assert driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, None, None, None) == 0
assert driver.cuCtxSynchronize() == 0
print(sys.argv[1:], __name__)
sys.exit(4)
"""


@pytest.mark.parametrize("words", [["./plain-script", "one"], ["plain-script", "one"]], ids=["path", "PATH"])
def test_a_script_that_names_no_interpreter_is_one_of_the_shell(tmp_path, words):
    """As for shells and for every program that uses execvp."""
    script = tmp_path / "plain-script"
    script.write_text('echo "$0 $1"\nexit 3\n')
    script.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run("-q", *words, cwd=tmp_path, PATH=path)
    alone = subprocess.run(
        ["env", *words], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    assert done.returncode == 3


def test_a_program_of_another_machine_is_named(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    program.chmod(0o755)
    done = run("-q", "./program", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("collector: cannot run ./program: Exec format error.")


@pytest.mark.parametrize("words", [["script.py"], ["--", "script.py"], ["-m", "script"]], ids=" ".join)
def test_a_python_script_and_a_module(tmp_path, words):
    (tmp_path / "script.py").write_text(PYTHON)
    done = run("-o", "out.json", *words, "--epochs", "1", "-o", "theirs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "['--epochs', '1', '-o', 'theirs'] __main__\n")
    assert kernel_names(tmp_path / "out.json") == ["from_python"]


COUNTING = """
import time
from array import array
import collector
from collector.tracing.stated_counters import state_counters
from typing import NamedTuple

class Series(NamedTuple):
    device: int
    name: str
    unit: str
    times: array
    values: array

BEGUN = time.time_ns()

def series():  # asked at the program's end
    return [Series(0, "allocated (torch)", "bytes", array("q", [BEGUN, time.time_ns()]), array("q", [5, 7]))]

state_counters(series)
"""


def test_counters_of_a_framework_are_in_the_trace(tmp_path):
    (tmp_path / "script.py").write_text(COUNTING + PYTHON)
    assert run("-o", "out.gpurec", "script.py", cwd=tmp_path).returncode == 4
    ((key, _, held),) = counters_over_time(collector.load(tmp_path / "out.gpurec").recording)
    assert key == (0, "allocated (torch)", "bytes")
    assert held.tolist()[0] == 5


@pytest.mark.parametrize("value", ["0", "off"])
def test_a_process_that_is_stopped_and_started_again_is_one_process(tmp_path, value):
    """It listens, although COLLECTOR_LISTEN says that no process shall."""
    again = """
from collector.launching.attached_process import AttachedProcess
AttachedProcess(os.getpid()).stop()
AttachedProcess(os.getpid()).start()
assert driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, None, None, None) == 0
assert driver.cuCtxSynchronize() == 0
sys.exit(4)
"""
    (tmp_path / "script.py").write_text(PYTHON.replace("sys.exit(4)", again))
    done = run("-q", "--listen", "-o", "out.json", "script.py", cwd=tmp_path, COLLECTOR_LISTEN=value)
    assert (done.returncode, done.stderr) == (4, "collector: the trace is in out.json\n")
    trace = json.loads((tmp_path / "out.json").read_text())
    assert sum(event.get("name") == "from_python" and event["ph"] == "X" for event in trace["traceEvents"]) == 2


def test_a_daemon_goes_on_into_the_folder_that_is_named(tmp_path):
    done = run("-o", "out.gpurec", launching_program(), "daemon", cwd=tmp_path, WAIT_MS="4000")
    assert done.returncode == 7
    last = done.stderr.splitlines()[-1]
    assert "still running: what they record from now on is in " in last
    [folder] = tmp_path.glob(".collector-run-*")
    assert str(folder) in last
    until = time.monotonic() + 120
    while not ((found := list(folder.glob("*.journal"))) and collector.load(found[0]).ledger.complete):
        assert time.monotonic() < until
        time.sleep(0.1)
    names = [kernel.name for kernel in collector.load(found[0]).recording.kernels]
    assert (names.count("work"), names.count("late_work")) == (100, 10)


def test_a_daemon_is_waited_for_if_asked(tmp_path):
    done = run("--wait", "all", "-o", "out.gpurec", launching_program(), "daemon", cwd=tmp_path, WAIT_MS="1500")
    assert (done.returncode, [path.name for path in tmp_path.iterdir()]) == (7, ["out.gpurec"])
    names = kernel_names(tmp_path / "out.gpurec")
    assert (names.count("work"), names.count("late_work")) == (100, 10)
    assert collector.load(tmp_path / "out.gpurec").ledger.complete


def test_a_child_is_a_process_of_its_own_in_the_trace(tmp_path):
    done = run("-o", "out.json", launching_program(), "fork-exec", cwd=tmp_path)
    assert done.returncode == 7
    assert "(2 processes)" in done.stderr
    names = processes_of(tmp_path / "out.json")
    assert len({name.partition(" GPU")[0] for name in names if name.startswith("process ") and "GPU" in name}) == 2


def test_the_host_of_a_process_that_executes_another_program(tmp_path):
    """Also where the number of the process is that of its second journal, as in a container."""
    with subprocess.Popen([launching_program(), "exec"], env=injected_environment(tmp_path, WAIT_MS="1500")) as process:
        process.wait()
    stem = f"{socket.gethostname()}-{process.pid}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{stem}.2.journal", f"{stem}.journal"]
    (tmp_path / f"{stem}.2.journal").rename(tmp_path / f"node-1-{process.pid}.{process.pid}.journal")
    (tmp_path / f"{stem}.journal").rename(tmp_path / f"node-1-{process.pid}.journal")
    found, _, lost = traced_processes(tmp_path)
    assert {each.identity.host for each in found} == {"node-1"}
    assert len(found) + len(lost) == 2


def test_eight_ranks_are_one_aligned_trace(tmp_path):
    """Ranks run at the same time on one machine, whose clock is theirs."""
    launcher = SUPPORT / "ranked_launcher.py"
    done = run("-o", "out.json", launcher, "8", launching_program(), "exit", "50", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert {f"rank {rank} GPU 0" for rank in range(8)} <= processes_of(tmp_path / "out.json")
    trace = json.loads((tmp_path / "out.json").read_text())
    assert sorted(each["rank"] for each in trace["otherData"]["inputs"]) == list(range(8))
    assert sum(event.get("name") == "work" and event["ph"] == "X" for event in trace["traceEvents"]) == 400
    starts = [each["start_ns"] for each in trace["otherData"]["inputs"]]
    assert max(starts) - min(starts) < 60e9


def test_each_rank_in_a_file_of_its_own(tmp_path):
    launcher = SUPPORT / "ranked_launcher.py"
    pattern = "{env:JOB}/rank{rank}.gpurec"
    done = run("-q", "-o", pattern, launcher, "3", launching_program(), "exit", "9", cwd=tmp_path, JOB="night")
    assert done.returncode == 7
    assert sorted(path.name for path in (tmp_path / "night").iterdir()) == [f"rank{rank}.gpurec" for rank in range(3)]
    assert kernel_names(tmp_path / "night" / "rank2.gpurec") == ["work"] * 9


def test_a_format_for_one_step_gets_a_file_for_each_process(tmp_path):
    launcher = SUPPORT / "ranked_launcher.py"
    run("-q", "-o", "out.gpurec", launcher, "2", launching_program(), "exit", "9", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.rank0.gpurec", "out.rank1.gpurec"]


def test_a_dataset(tmp_path):
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset

    launcher = SUPPORT / "ranked_launcher.py"
    done = run("-o", "runs/", launcher, "2", launching_program(), "exit", "9", cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"]
    dataset = Dataset(tmp_path / "runs")
    assert len({key.run for key in dataset.keys}) == 1
    assert [(key.rank, key.step) for key in dataset.keys] == [(0, 0), (1, 0)]
    assert [len(step.kernels) for step in dataset] == [9, 9]


def test_two_processes_of_one_rank_are_steps_of_it_in_a_dataset(tmp_path):
    """The child inherits RANK."""
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset

    words = ("-q", "-o", "runs/", launching_program(), "fork-exec")
    done = run(*words, cwd=tmp_path, RANK="0", WORLD_SIZE="1")
    assert (done.returncode, done.stderr) == (7, "collector: the trace (2 processes) is in runs\n")
    dataset = Dataset(tmp_path / "runs")
    assert [(key.rank, key.step) for key in dataset.keys] == [(0, 0), (0, 1)]
    assert [len(step.kernels) for step in dataset] == [100, 30]


def test_processes_without_a_rank_take_none_of_others_in_a_dataset(tmp_path):
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset

    program = (
        "import os, subprocess, sys\n"
        "for rank in ('1', ''):\n"
        "    subprocess.run(sys.argv[1:], env=os.environ | ({'RANK': rank} if rank else {}))\n"
    )
    (tmp_path / "start.py").write_text(program)
    done = run("-q", "-o", "runs/", "start.py", launching_program(), "exit", "9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(key.rank, key.step) for key in Dataset(tmp_path / "runs").keys] == [(0, 0), (1, 0)]


def test_nvtx_is_handled_on_request_alone(tmp_path):
    program = "import os, sys; print(os.environ.get('NVTX_INJECTION64_PATH'), os.environ.get('COLLECTOR_RUN_NVTX'))"
    words = ["--", sys.executable, "-c", program]
    assert run("-q", *words, cwd=tmp_path).stdout == "None None\n"
    assert run("-q", "--nvtx", *words, cwd=tmp_path).stdout == f"{capture_library()} None\n"
    assert run("-q", "--nvtx-domains", "a,b", *words, cwd=tmp_path).stdout == f"{capture_library()} a,b\n"


@pytest.mark.parametrize("option", ["--nvtx", "--capture-range=nvtx:step", "--python"])
def test_a_tool_of_nvtx_that_is_not_there_is_one_line(tmp_path, option):
    done = run("-q", option, sys.executable, "-c", "", cwd=tmp_path, NVTX_INJECTION64_PATH="/nope/x.so")
    line = "collector: NVTX_INJECTION64_PATH named /nope/x.so, which does not exist\n"
    assert done.stderr.count(line) == (0 if option == "--python" else 1)


NOTHING = "collector: no process of the program did anything on a GPU that was recorded: there is no trace"


def test_a_program_that_cannot_be_traced_on_this_machine_is_told_why(tmp_path):
    done = run("-o", "out.json", sys.executable, "-c", "", cwd=tmp_path, COLLECTOR_LIBCUDA="/nowhere/libcuda.so.1")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{NOTHING}. This machine cannot be traced: no NVIDIA driver in this process ")
    assert "/nowhere/libcuda.so.1: cannot open" in line
    assert line.endswith("). Correct COLLECTOR_LIBCUDA, or unset it to search")


UNLESS = (
    "unless a line above names another reason. A program is traced if it loads libcuda dynamically and is not set-uid"
)


def test_a_program_that_uses_no_cuda_is_told_what_it_has_to_do(tmp_path):
    done = run("-o", "out.json", sys.executable, "-c", "", cwd=tmp_path)
    assert done.stderr == f"{NOTHING}. None has initialised CUDA, {UNLESS}\n"


def test_a_program_that_ends_before_the_delay_is_told_of_it(tmp_path):
    done = run("--delay=60", launching_program(), "exit", cwd=tmp_path)
    reason = f"None has initialised CUDA, and run for 60 s after that (--delay), {UNLESS}"
    assert (done.returncode, done.stderr) == (7, f"{NOTHING}. {reason}\n")


def test_a_program_that_launches_nothing_is_told_that_alone(tmp_path):
    done = run("-o", "out.json", launching_program(), "exit", "0", cwd=tmp_path)
    assert done.stderr == f"{NOTHING}\n"


def test_another_tool_is_named_and_left_alone(tmp_path):
    done = run(launching_program(), cwd=tmp_path, **{INJECTION_VARIABLE: "/opt/other/tool.so"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "names /opt/other/tool.so: another tool traces" in done.stderr


def test_a_run_inside_of_a_run_is_the_inner_ones(tmp_path):
    done = run("-q", "-o", "outer.json", *RUN, "-q", "-o", "inner.json", launching_program(), cwd=tmp_path)
    assert done.returncode == 7
    assert [path.name for path in tmp_path.iterdir()] == ["inner.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no program is named"),
        (["no-such-program"], "cannot run no-such-program: No such file or directory"),
        (["-o", "out.nothing", "true"], "no format has this suffix"),
        (["-o", "nowhere/out.json", "true"], "nowhere does not exist. Make it first: mkdir -p nowhere"),
        (["-o", "no where/out.json", "true"], "no where does not exist. Make it first: mkdir -p 'no where'"),
        (["-o", "nowhere/{rank}.gpurec", "true"], "nowhere does not exist. Make it first: mkdir -p nowhere"),
        (["-o", "/dev/null/{rank}.gpurec", "true"], ": /dev/null is not a folder. Write to another place"),
        (["-o", "/dev/null/in/{rank}/out.gpurec", "true"], ": /dev/null is not a folder. Write to another place"),
        (["-o", "/dev/null/in/data/", "true"], ": /dev/null is not a folder. Write to another place"),
        (["-o", "/dev/null/{pid}/data/", "true"], ": /dev/null is not a folder. Write to another place"),
        (["--kinds", "kernel", "true"], "unknown kind 'kernel'"),
        (["--kinds", "", "true"], "unknown kind ''"),
        (["--kinds", "kernels,peer_copies", "true"], "the kind peer_copies needs memcpys"),
        (["--delay", "-1", "true"], "argument --delay: '-1' is not a number of seconds from 0 to"),
        (["--duration", "nan", "true"], "argument --duration: 'nan' is not a number of seconds from 0 to"),
        (["--duration", "0", "true"], "argument --duration: '0' is not a time in which anything can"),
        (["--nvtx-domains", "", "true"], "--nvtx-domains '' has a domain without a name. The default domain is called"),
        (["--nvtx-domains", "a,", "true"], "--nvtx-domains 'a,' has a domain without a name"),
        (["--budget", "", "true"], "budget='': write a share"),
        (["--max-size", "10KB", "true"], "at least 64 KiB are kept"),
        (["-o", "", "true"], "the name of the output is empty"),
    ],
    ids=str,
)
def test_bad_arguments_are_one_line_and_nothing_runs(tmp_path, words, message):
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", [".", "mine/"])
def test_a_folder_of_something_else_is_no_output_and_nothing_runs(tmp_path, output):
    folder = tmp_path / output
    folder.mkdir(exist_ok=True)
    (folder / "notes.txt").touch()
    done = run("-q", "-o", output, sys.executable, "-c", "print('ran')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    line = f"collector: {Path(output)} is not a dataset, and not empty. Name a folder that does not exist yet\n"
    assert done.stderr == line
    assert list(folder.iterdir()) == [folder / "notes.txt"]


def test_a_program_of_the_working_directory_is_named_with_its_path(tmp_path):
    (tmp_path / "train").write_text("#!/bin/sh\n")
    (tmp_path / "train").chmod(0o755)
    done = run("train", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2, "collector: cannot run train: No such file or directory. It is in the working directory: write ./train\n"
    )  # fmt: skip
    (tmp_path / "train").chmod(0o644)
    assert "write ./train" not in run("train", cwd=tmp_path).stderr


def test_an_output_that_cannot_be_written_at_the_end_keeps_the_records(tmp_path):
    (tmp_path / "script.py").write_text(PYTHON.replace("sys.exit(4)", "os.mkdir('out.json'); sys.exit(4)"))
    done = run("-q", "-o", "out.json", "script.py", cwd=tmp_path)
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert "what was recorded is in " in line
    (folder,) = tmp_path.glob(".collector-run-*")
    assert str(folder) in line
    (journal,) = folder.iterdir()
    assert kernel_names(journal) == ["from_python"]


def test_a_folder_of_journals_is_merged(tmp_path):
    """Programs may be given the variables by other means; the journals then stay."""
    folder = tmp_path / "journals"
    folder.mkdir()
    for rank in range(2):
        environment = injected_environment(folder, COLLECTOR_RUN_VARIABLES="RANK,WORLD_SIZE", WORLD_SIZE="2")
        subprocess.run([launching_program()], env=environment | {"RANK": str(rank)}, check=False)
    command = [sys.executable, "-m", "collector", "merge", "-q", folder, "-o", tmp_path / "out.json"]
    subprocess.run(command, check=True)
    assert {"rank 0 GPU 0", "rank 1 GPU 0"} <= processes_of(tmp_path / "out.json")


@pytest.mark.parametrize("where", ["closed pipe", "/dev/full"])
def test_standard_error_that_cannot_be_written_loses_neither_the_trace_nor_the_status(tmp_path, where):
    if where == "/dev/full":
        errors = os.open(where, os.O_WRONLY)
    else:
        reader, errors = os.pipe()
        os.close(reader)
    command = [*RUN, "-o", "out.gpurec", launching_program(), "exit", "50"]
    done = subprocess.run(command, env=simulator_environment(), cwd=tmp_path, stderr=errors, check=False)
    os.close(errors)
    assert done.returncode == 7
    assert [path.name for path in tmp_path.iterdir()] == ["out.gpurec"]
    assert kernel_names(tmp_path / "out.gpurec") == ["work"] * 50


def test_a_message_that_cannot_be_written_changes_no_status(tmp_path):
    for words, status in (("-q", launching_program(), "no-cuda"), 5), (("no-such-program",), 2):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run([*RUN, *words], env=simulator_environment(), cwd=tmp_path, stderr=full, check=False)
        assert done.returncode == status


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM], ids=str
)
def test_a_signal_while_the_trace_is_written_keeps_the_records(tmp_path, number):
    """The trace goes into a pipe that nobody empties."""
    os.mkfifo(tmp_path / "out.json")
    reader = os.open(tmp_path / "out.json", os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(
        [*RUN, "-q", "-o", "out.json", launching_program(), "exit", "3000"],
        env=simulator_environment(),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: restore_default(number),
    ) as process:
        assert select.select([reader], [], [], 60)[0]
        time.sleep(0.3)
        process.send_signal(signal.SIGUSR1)  # is the program's, which has ended
        time.sleep(0.3)  # Python notices a signal late that comes just before it goes on with an interrupted write
        process.send_signal(number)
        assert process.wait() == 7
        assert process.stderr is not None
        (line,) = process.stderr.read().splitlines()
    os.close(reader)
    (folder,) = tmp_path.glob(".collector-run-*")
    assert line == (
        f"collector: interrupted; what was recorded is in {folder}: `collector merge {folder} -o FILE` makes one trace "
        "of it"
    )
    (journal,) = folder.glob("*.journal")
    assert kernel_names(journal) == ["work"] * 3000


def test_a_kept_folder_is_merged_as_the_message_says(tmp_path):
    """It has files of other kinds as well, and of a process with a limit for the disk a folder of segments."""
    folder = tmp_path / ".collector-run-kept"
    folder.mkdir()
    for words in ({}, {"COLLECTOR_RUN_MAX_BYTES": str(1 << 20)}):
        subprocess.run([launching_program()], env=injected_environment(folder, **words), check=False)
    assert {path.is_dir() for path in folder.glob("*.journal")} == {True, False}
    (folder / "host-1.python").write_text("no names\n")
    (folder / "note.txt").write_text("a note\n")
    (folder / "host-2.journal").write_bytes(b"GPUJRNL\x02")
    command = [sys.executable, "-m", "collector", "merge", "-q", folder, "-o", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        0,
        f"collector: {folder}: files that are not traces, or hold no records, are left out: host-1.python, "
        "host-2.journal, note.txt\n",
    )
    trace = json.loads((tmp_path / "out.json").read_text())
    assert sum(event.get("name") == "work" and event["ph"] == "X" for event in trace["traceEvents"]) == 200


def test_a_journal_of_segments_is_one_input_of_a_merge(tmp_path):
    folder = tmp_path / "journals"
    folder.mkdir()
    environment = injected_environment(folder, COLLECTOR_RUN_MAX_BYTES=str(1 << 20))
    subprocess.run([launching_program()], env=environment, check=False)
    (journal,) = folder.iterdir()
    command = [sys.executable, "-m", "collector", "merge", journal, "-o", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1 input, " in done.stdout
