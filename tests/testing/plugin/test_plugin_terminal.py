"""Untrusted names (kernels, annotations, devices, tests) reach the terminal escaped."""

import io

import pytest
from hostile_names import EVIL, obeyed
from plugin_runs import run

from collector.testing.plugin import runner
from collector.testing.plugin.devices import Device, Found
from collector.testing.plugin.plugin_options import Keep, PluginOptions
from collector.testing.plugin.run_report import RunReport
from collector.testing.plugin.terminal_summary import write_summary

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]

SOURCE = (
    f"EVIL = {EVIL!a}\n"
    + """
import collector, pytest
from collector.testing import SimulatedGpu

def launch(gpu):
    with collector.annotate("layer" + EVIL):
        gpu.launch("kernel" + EVIL)
"""
)

LIMITS = """
@pytest.mark.gpu_limits(kernels=0)
def test_exceeds(simulated_gpu):
    launch(simulated_gpu)

@pytest.mark.gpu_limits(kernels=0)
def test_fails_and_exceeds(simulated_gpu):
    launch(simulated_gpu)
    assert False

def test_step(simulated_gpu, gpu_trace):
    with gpu_trace(kernels=0):
        launch(simulated_gpu)
"""

LEAKS = """
kept = []

@pytest.mark.gpu_leaks
def test_leaks(simulated_gpu):
    with collector.annotate("layer" + EVIL):
        kept.append(simulated_gpu.malloc(1 << 20))
"""

SNAPSHOT = """
@pytest.fixture
def gpu():
    with SimulatedGpu(name="device" + EVIL) as gpu:
        yield gpu

def test_snapshot(gpu, gpu_trace):
    with gpu_trace() as step:
        launch(gpu)
    step.assert_matches_snapshot()
"""

SKIPPED = """
@pytest.mark.gpu(memory="1TiB")
def test_large():
    pass
"""


def shown(result):
    return result.stdout.str() + result.stderr.str()


def assert_escaped(text, *names):
    for name in names:
        assert rf"{name}\x1b]0;title" in text
    assert obeyed(text) == set()


@pytest.mark.medium
def test_limits_and_steps(pytester):
    result = run(pytester, SOURCE + LIMITS, "--tb=short")
    result.assert_outcomes(failed=3)
    text = shown(result)
    assert_escaped(text, "kernel", "layer")
    heads = [line for line in text.splitlines() if line.lstrip("E ").startswith("annotation ")]
    rows = [line for line in text.splitlines() if "x kernel" in line]
    assert len(heads) == len(rows) == 3
    assert {head.index("what") - row.index("1 x kernel") for head, row in zip(heads, rows, strict=True)} == {0}


@pytest.mark.medium
def test_leaks(pytester):
    result = run(pytester, SOURCE + LEAKS)
    result.assert_outcomes(passed=1, errors=1)
    assert_escaped(shown(result), "layer")


@pytest.mark.medium
def test_snapshots(pytester):
    run(pytester, SOURCE + SNAPSHOT, "--gpu-snapshot-update").assert_outcomes(passed=1)
    source = (SOURCE + SNAPSHOT).replace('"device"', '"model"')
    result = run(pytester, source)
    result.assert_outcomes(passed=1)
    assert_escaped(shown(result), "device", "model")
    result = run(pytester, source.replace('"kernel"', '"other"'), "--tb=line")
    result.assert_outcomes(failed=1)
    assert_escaped(shown(result), "kernel", "other", "device", "model")


def test_skipped_tests(pytester, monkeypatch):
    found = Found((Device("device" + EVIL, 1 << 30, (9, 0)),))
    monkeypatch.setattr(runner, "find_devices", lambda *, simulated: found)
    result = run(pytester, SOURCE + SKIPPED, "-rs")
    result.assert_outcomes(skipped=1)
    assert_escaped(shown(result), "device")


def test_without_a_gpu_the_reason(pytester, monkeypatch):
    monkeypatch.setattr(runner, "find_devices", lambda *, simulated: Found(reason="driver" + EVIL))
    result = run(pytester, SOURCE + SKIPPED, "--require-gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert_escaped(shown(result), "driver")


class Reporter:
    """As much of pytest's terminal reporter as the table needs."""

    class _tw:  # noqa: N801
        fullwidth = 100

    def __init__(self, *, color):
        self.hasmarkup = color
        self.text = io.StringIO()

    def write_sep(self, sign, title):
        print(sign, title, sign, file=self.text)

    def write_line(self, line, **_):
        print(line, file=self.text)


def test_the_table_of_the_run():
    run = RunReport()
    record = {"figures": {"device_time_ns": 5, "kernels": 1}, "losses": [], "kernels": []}
    run.add("test" + EVIL, "call", "passed", {**record, "remarks": ["remark" + EVIL], "sticky": "error" + EVIL})
    run.problem("problem" + EVIL)
    reporter = Reporter(color=False)
    options = PluginOptions(trace=True, folder=None, keep=Keep("failed"), report=None)
    write_summary(reporter, run, options, simulated=False)
    assert_escaped(reporter.text.getvalue(), "test", "remark", "problem", "error")


@pytest.mark.medium
def test_a_job_shows_the_tests_and_the_troubles_on_its_page(pytester, monkeypatch):
    page = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    passing = "\ndef test_one(simulated_gpu):\n    launch(simulated_gpu)\n"
    pytester.path.joinpath("file").write_text("")
    result = run(pytester, SOURCE + passing, "--gpu-trace", "--gpu-report", "file/report.json")
    text = page.read_text()
    assert text.startswith("## GPU work of the tests\n\n")
    assert "\n| test | GPU time | kernels | copies | bytes copied |\n| --- | ---: | ---: | ---: | ---: |\n" in text
    assert "test_one | " in text
    [line] = [each for each in result.outlines if each.startswith("::")]
    assert line.startswith("::error title=GPU work of the tests::the GPU report cannot be written: ")


@pytest.mark.medium
@pytest.mark.parametrize("options", [[], ["--gpu-trace"], ["--gpu-trace", "-n2"]], ids=str)
def test_a_job_shows_each_limit_that_was_exceeded_on_its_page(pytester, monkeypatch, options):
    if "-n2" in options:
        pytest.importorskip("xdist")
    page = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    several = """
@pytest.mark.gpu_limits(kernels=0, memcpys=3, kernel_time="1ns")
def test_several(simulated_gpu):
    launch(simulated_gpu)

@pytest.mark.gpu_limits(kernels=1)
def test_within(simulated_gpu):
    launch(simulated_gpu)

@pytest.mark.xfail
@pytest.mark.gpu_limits(kernels=0)
def test_expected(simulated_gpu):
    launch(simulated_gpu)
"""
    result = run(pytester, SOURCE + LIMITS + several, *options)
    title = "::error title=GPU work of the tests::"
    shown = sorted(each.removeprefix(title).partition("::")[2] for each in result.outlines if each.startswith("::"))
    assert shown == [
        "test_exceeds: limit kernels exceeded: 1, at most 0",
        "test_fails_and_exceeds: limit kernels exceeded: 1, at most 0",
        "test_several: limit kernel_time exceeded: 10 µs, at most 1 ns",
        "test_several: limit kernels exceeded: 1, at most 0",
        "test_step: limit kernels of a step exceeded: 1, at most 0",
    ]
    text = page.read_text()
    for each in ("test_exceeds", "test_several", "test_step"):
        assert f"::{each}: limit kernel" in text
    if options:
        rows = [line for line in text.splitlines() if line.startswith("| ") and "test" in line]
        assert len([row for row in rows if "exceeds" in row and "(over its limits)" in row]) == 2
        assert not any("within" in row and "over" in row for row in rows)
