"""`collector bench` and the `gpu_benchmark` fixture, on the simulated card."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from collector.bench.report import Report
from collector.cli import main

pytest.importorskip("scipy")

FILE = """
from collector import bench

@bench.benchmark(precision=0.01, seed=1)
@bench.parametrize("n", [1, 2])
def scale(n):
    with bench.SimulatedCard(seed=n) as card:
        yield bench.case({{"a": card.kernel("a", n * 10_000), "b": card.kernel("b", n * {mean_b})}}, gpu=card)
"""
BAD_ARM = """
@bench.benchmark
def bad():
    with bench.SimulatedCard() as card:
        yield bench.case({"good": card.kernel("k", 1_000), "idle": lambda: None}, gpu=card)

@bench.benchmark
def worse():
    raise OSError("no disk")
"""


@pytest.fixture
def bench_file(tmp_path):
    def write(mean_b=10_500, more=""):
        path = tmp_path / "bench_it.py"
        path.write_text(FILE.format(mean_b=mean_b) + more)
        return str(path)

    return write


def test_the_example_runs_where_there_is_no_gpu(root, capsys, tmp_path):
    plot = tmp_path / "out.html"
    status = main(["bench", str(root / "examples" / "bench_saxpy.py"), "--seed", "1", "--plot", str(plot)])
    told = capsys.readouterr()
    assert (status, told.err) == (0, "")
    assert "saxpy[n=16777216]" in told.out
    assert "simulated" in told.out
    assert plot.stat().st_size > 10_000


def test_a_regression_is_status_1_and_the_same_again_is_0(bench_file, capsys, tmp_path):
    baseline = str(tmp_path / "main.json")
    assert main(["bench", bench_file(), "--json", baseline]) == 0
    assert [each.title for each in Report.load(baseline).comparisons] == ["scale[n=1]", "scale[n=2]"]
    assert main(["bench", bench_file(), "--baseline", baseline]) == 0
    capsys.readouterr()
    assert main(["bench", bench_file(12_000), "--baseline", baseline, "--fail-above", "3%", "-k", "n=2"]) == 1
    told = capsys.readouterr().out
    assert "scale[n=2] b: 1.14" in told
    assert told.count("REGRESSION") == 1
    assert main(["bench", bench_file(12_000), "--baseline", baseline, "--fail-above", "20%"]) == 0


def test_what_cannot_be_measured_is_named_and_the_rest_reported(bench_file, capsys):
    assert main(["bench", bench_file(more=BAD_ARM)]) == 1
    told = capsys.readouterr()
    assert "scale[n=2]" in told.out
    assert "arm 'idle': it launches nothing" in told.out
    assert told.err == "collector: worse: benchmark worse raised OSError: no disk\n"


@pytest.mark.parametrize(
    "options",
    [["--baseline", "missing.json"], ["-k", "nowhere"], ["--json", "no/such/folder/r.json"]],
    ids=["baseline", "pattern", "output"],
)
def test_trouble_is_one_line_and_status_2_before_anything_is_measured(options, bench_file, capsys):
    assert main(["bench", bench_file(), *options]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("share", ["x", "-1%", "200%"])
def test_a_threshold_that_is_no_share_is_refused(share, bench_file, capsys):
    with pytest.raises(SystemExit):
        main(["bench", bench_file(), f"--fail-above={share}"])
    assert "is no share such as 3%" in capsys.readouterr().err


TEST_FILE = """
import os
from collector import bench

def test_kernel(gpu_benchmark):
    with bench.SimulatedCard(seed=1) as card:
        kernel = card.kernel("k", float(os.environ["MEAN_NS"]))
        report = gpu_benchmark(kernel, gpu=card, seed=1)
        assert report.comparison.name == "test_kernel"

def test_idle(gpu_benchmark):
    with bench.SimulatedCard(seed=1) as card:
        gpu_benchmark({"good": card.kernel("k", 1_000), "idle": lambda: None}, gpu=card)
"""


def test_the_fixture_holds_tests_against_stored_baselines(tmp_path):
    (tmp_path / "test_it.py").write_text(TEST_FILE)

    def run(mean_ns, *options):
        command = [sys.executable, "-m", "pytest", "-p", "collector.bench.pytest_fixture", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "MEAN_NS": str(mean_ns)}
        done = subprocess.run(
            [*command, "-q", "test_it.py", *options],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    status, told = run(10_000, "--gpu-benchmark-save=base")
    assert status == 1
    assert "1 failed, 1 passed" in told
    assert "arm 'idle': it launches nothing" in told
    assert [path.name for path in (tmp_path / "base").iterdir()] == ["test_it.py_test_kernel.json"]
    assert "1 failed, 1 passed" in run(10_100, "--gpu-benchmark-baseline=base")[1]
    status, told = run(12_000, "--gpu-benchmark-baseline=base", "-k", "test_kernel")
    assert status == 1
    assert "slower than the baseline: call: 1.2" in told
    assert run(12_000, "--gpu-benchmark-baseline=base", "--gpu-benchmark-fail-above=0.3", "-k", "kernel")[0] == 0
