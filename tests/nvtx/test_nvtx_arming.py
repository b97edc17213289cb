"""When the handler is found: the variable's value, the time of arming, tools before ours, copies that were missed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from collector import _native
from collector.tracing.nvtx import NEXT_TOOL_VARIABLE, VARIABLE, missing_tool
from tests.support.nvtx_package import require_nvtx_package

pytestmark = pytest.mark.simulator
ROOT = Path(__file__).resolve().parent.parent.parent

PROLOGUE = """
import os, warnings
def kernels(step):
    return {kernel.name: kernel.annotation for kernel in step.recording.kernels}
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, NEXT_TOOL_VARIABLE)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROLOGUE + textwrap.dedent(program)],
        env={
            **kept,
            "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)]),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


TRACED = """
import collector
from collector.testing import SimulatedGpu
{before}
with SimulatedGpu() as gpu, collector.trace({options}) as step:
    with nvtx.annotate("outer", domain="mine", color="red", category="group"):
        gpu.launch("a")
        nvtx.push_range("inner")
        gpu.launch("b")
        nvtx.pop_range()
print(kernels(step), step.ledger.losses(), step.recording.environment.get("nvtx_missed"))
"""
ALL_NAMED = "{'a': 'outer', 'b': 'outer/inner'} [] None\n"


@pytest.fixture(scope="module", autouse=True)
def _package():
    require_nvtx_package()


@pytest.mark.medium
def test_the_environment_arms_when_collector_is_imported():
    assert run("import nvtx" + TRACED.format(before="", options=""), COLLECTOR_NVTX="1").stdout == ALL_NAMED


@pytest.mark.parametrize("variable", ["COLLECTOR_NVTX", "COLLECTOR_LISTEN"])
@pytest.mark.parametrize("value", ["", "0", "false", "No", "OFF"])
def test_a_variable_that_says_no_does_nothing(variable, value):
    program = f"""
    import collector, sys
    print("{VARIABLE}" in os.environ, "collector.tracing.listener" in sys.modules)
    """
    assert run(program, **{variable: value}).stdout == "False False\n"


@pytest.mark.medium
def test_arm_reaches_a_package_that_was_imported_and_not_used():
    program = "import nvtx" + TRACED.format(before="collector.nvtx.arm()", options="")
    assert run(program).stdout == ALL_NAMED


@pytest.mark.slow
def test_a_trace_that_wants_ranges_arms():
    assert run("import nvtx" + TRACED.format(before="", options="nvtx=True")).stdout == ALL_NAMED
    named = run("import nvtx" + TRACED.format(before="", options="nvtx=['mine']")).stdout
    assert named == "{'a': 'outer', 'b': 'outer'} [] None\n"


@pytest.mark.medium
def test_ranges_stay_off_where_nothing_was_armed():
    named = run("import nvtx" + TRACED.format(before="", options="")).stdout
    assert named == "{'a': '', 'b': ''} [] None\n"


@pytest.mark.medium
def test_a_copy_that_was_used_before_is_named():
    program = """
        import nvtx
        nvtx.push_range("too early")
        nvtx.pop_range()
    """
    with_warnings = textwrap.dedent(program) + TRACED.format(before="", options="nvtx=True")
    done = run(with_warnings)
    assert done.stdout.startswith("{'a': '', 'b': ''} ['NVTX of ")
    assert ".so" in done.stdout
    assert "in use before the handler was armed: those ranges are not seen" in done.stderr


@pytest.mark.medium
@pytest.mark.parametrize("stream", [False, True])
def test_every_kind_of_recording_names_a_copy_that_was_used_before(tmp_path, stream):
    program = f"""
import nvtx, pathlib, time, collector
from collector.testing import SimulatedGpu
nvtx.push_range("too early")
nvtx.pop_range()
collector.nvtx.arm()
folder = pathlib.Path({str(tmp_path)!r})
with SimulatedGpu() as gpu:
    if {stream}:
        with collector.trace(journal=folder / "journal", stream=True) as step:
            gpu.launch("kernel")
    else:
        with collector.record(keep="10s", folder=folder) as recorder:
            gpu.launch("kernel")
            gpu.synchronize()
            step = collector.load(recorder.dump().journal)
ledger = step.ledger
print(ledger.source_counters["nvtx_copies_missed"], step.recording.environment["nvtx_missed"], ledger.losses())
"""
    printed = run(program).stdout
    assert printed.startswith("1 ")
    assert ".so ['NVTX of 1 library was in use before" in printed


@pytest.mark.medium
def test_copies_and_their_states():
    program = """
        import collector, nvtx
        from nvtx._lib import lib
        print({state for library, state in collector.nvtx.copies() if "nvtx" in library})
        nvtx.push_range("x"); nvtx.pop_range()
        print("missed" in {state for library, state in collector.nvtx.copies() if "nvtx" in library})
    """
    assert run(program).stdout == "{'fresh'}\nTrue\n"


@pytest.mark.medium
def test_another_tool_that_takes_the_variable_away_is_answered_by_the_next_trace():
    before = "collector.nvtx.arm(); del os.environ['NVTX_INJECTION64_PATH']"
    assert run("import nvtx" + TRACED.format(before=before, options="")).stdout == ALL_NAMED


@pytest.mark.slow
def test_a_variable_that_names_nothing_loadable_leaves_the_handler_at_work(tmp_path):
    program = "import nvtx" + TRACED.format(before="collector.nvtx.arm()", options="")
    done = run(program, **{VARIABLE: str(tmp_path / "gone.so")})
    assert done.stdout == ALL_NAMED
    assert f"{VARIABLE} named {tmp_path / 'gone.so'}, which does not exist" in done.stderr
    (tmp_path / "text.so").write_text("no library")
    assert run(program, **{VARIABLE: str(tmp_path / "text.so")}).stdout == ALL_NAMED
    assert run(program, **{VARIABLE: "./."}).stdout == ALL_NAMED


def test_a_tool_that_cannot_be_looked_at_is_reported():
    tool = f"/{'n' * 300}/tool.so"
    assert missing_tool({NEXT_TOOL_VARIABLE: tool}) == f"{VARIABLE} named {tool}, which does not exist"


@pytest.mark.medium
def test_arming_twice_does_not_chain_the_handler_to_itself():
    program = "import nvtx" + TRACED.format(before="collector.nvtx.arm(); collector.nvtx.arm()", options="nvtx=True")
    assert run(program, **{VARIABLE: _native.capture_library()}).stdout == ALL_NAMED


@pytest.mark.slow
def test_a_tool_that_was_there_gets_every_call_with_its_own_handles(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("NO SECOND TOOL: a C compiler is missing")
    tool = tmp_path / "tool.so"
    source = Path(__file__).with_name("chained_tool.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tool, source], check=True)
    program = f"""
        import collector
        from collector.testing import SimulatedGpu
        from tests.support.nvtx_copy import NvtxCopy, attributes
        collector.nvtx.arm()
        copies = [NvtxCopy(os.environ["{VARIABLE}"]) for _ in range(2)]
        def calls(copy):
            domain = copy.DomainCreateA(b"mine")
            text = copy.DomainRegisterStringA(domain, b"name")
            levels = [copy.DomainRangePushEx(domain, attributes(text)), copy.RangePushA(b"inner")]
            gpu.launch("kernel")
            levels += [copy.RangePop(), copy.DomainRangePop(domain)]
            copy.RangeEnd(copy.RangeStartA(b"started"))
            copy.MarkA(b"mark")
            return levels
        with SimulatedGpu() as gpu:
            print(calls(copies[0]))
            with collector.trace() as step:
                print(calls(copies[1]))
        print(kernels(step))
    """
    done = run(program, **{VARIABLE: str(tool)})
    assert done.stdout == "[41, 41, 41, 41]\n[0, 0, 0, 0]\n{'kernel': 'name/inner'}\n"
    assert done.stderr == "copies 2 pushes 4 pops 4 starts 2 ends 2 marks 2 wrong 0\n"


@pytest.mark.medium
def test_the_handles_of_the_next_tool_stay_those_of_their_domain(tmp_path):
    """Though a text is registered in two domains, and two users make and destroy a domain of one name."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("NO SECOND TOOL: a C compiler is missing")
    tool = tmp_path / "tool.so"
    source = Path(__file__).with_name("handle_tool.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tool, source], check=True)
    program = f"""
        import collector
        from tests.support.nvtx_copy import NvtxCopy, attributes
        collector.nvtx.arm()
        nvtx = NvtxCopy(os.environ["{VARIABLE}"])
        def push(domain, text):
            nvtx.DomainRangePushEx(domain, attributes(text))
        domains = [nvtx.DomainCreateA(name) for name in (b"one", b"two", b"one")]
        texts = [nvtx.DomainRegisterStringA(domain, b"text") for domain in domains]
        for domain, text in zip(domains, texts):
            push(domain, text)
        nvtx.DomainDestroy(domains[2])
        push(domains[0], texts[0])
        nvtx.DomainDestroy(domains[0])
        again = nvtx.DomainCreateA(b"one")
        push(again, nvtx.DomainRegisterStringA(again, b"text"))
        nvtx.DomainDestroy(again)
    """
    done = run(program, **{VARIABLE: str(tool)})
    assert done.stderr == "made 3 destroyed 2 pushes 5 wrong 0\n"


@pytest.mark.slow
def test_collector_info_explains_how_ranges_are_recorded(tmp_path):
    def told(**environment):
        done = run("from collector.cli import main; main(['info'])", **environment)
        lines = (line.removeprefix("· ") for line in done.stdout.splitlines())
        return next(line for line in lines if line.startswith("NVTX: "))

    assert told() == "NVTX: ranges are not recorded: set COLLECTOR_NVTX=1, or call collector.nvtx.arm()"
    assert told(COLLECTOR_NVTX="1") == "NVTX: ranges are recorded"
    tool = tmp_path / "tool.so"
    tool.touch()
    assert told(**{VARIABLE: str(tool)}).endswith(f"; {VARIABLE} names {tool}, which arm() keeps in use")
    assert told(**{VARIABLE: "/gone.so"}).endswith(f"; {VARIABLE} names /gone.so, which does not exist")
    assert told(COLLECTOR_NVTX="1", **{VARIABLE: str(tool)}) == f"NVTX: ranges are recorded, and passed on to {tool}"
