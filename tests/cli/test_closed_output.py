"""A reader of the output that leaves before its end, and a full one: the exit status and the files of a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.captures import CaptureBuilder

pytestmark = pytest.mark.simulator

UNREAD = 141
"""The status that shells show for a program that SIGPIPE ends."""
BENCHMARK = """
from collector import bench

@bench.benchmark(precision=0.05, seed=1)
def scale():
    with bench.SimulatedCard(seed=1) as card:
        yield bench.case({"a": card.kernel("a", 10_000), "b": card.kernel("b", 20_000)}, gpu=card)
"""
DOCUMENTS = ("json", "csv", "markdown", "html", "plot")


def run(words, stdout, folder, unbuffered=""):
    return subprocess.run(
        [sys.executable, "-m", "collector", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )


def run_unread(words, folder, unbuffered=""):
    """Run the command with a pipe as standard output that nothing reads."""
    read, write = os.pipe()
    os.close(read)
    try:
        return run(words, write, folder, unbuffered)
    finally:
        os.close(write)


@pytest.fixture
def sides(tmp_path):
    """Steps before and now, which are twice as long."""
    for side, duration in (("before", 10_000), ("now", 20_000)):
        (tmp_path / side).mkdir()
        for number in range(8):
            build = CaptureBuilder()
            length = duration + 10 * number
            build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 2000 + length
            build.kernel("gemm", 1000, length).recording().save(tmp_path / side / f"step_{number}.pb")
    return tmp_path


@pytest.mark.medium
@pytest.mark.parametrize(("now", "unbuffered", "status"), [("now", "", 1), ("now", "1", 1), ("before", "1", 0)])
def test_a_comparison_has_its_exit_status_also_if_nothing_is_read(now, unbuffered, status, sides):
    pytest.importorskip("scipy")
    done = run_unread(["compare", "before", now], sides, unbuffered)
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.medium
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["info"], ["info", "--json"]], ids=" ".join)
def test_info_has_its_exit_status_also_if_nothing_is_read(words, unbuffered, tmp_path):
    expected = run(words, subprocess.DEVNULL, tmp_path).returncode
    done = run_unread(words, tmp_path, unbuffered)
    assert (done.returncode, done.stderr) == (expected, "")


@pytest.mark.medium
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        ["summary", "before"],
        ["stats", "before/step_0.pb", "--json"],
        ["prof", "before/step_0.pb", "scope"],
        ["--help"],
        ["stats", "--help"],
    ],
    ids=" ".join,
)
def test_output_that_nothing_reads_is_no_success(words, unbuffered, sides):
    done = run_unread(words, sides, unbuffered)
    assert (done.returncode, done.stderr) == (UNREAD, "")


@pytest.mark.medium
def test_files_are_written_also_if_the_report_about_them_is_not_read(sides):
    assert run_unread(["merge", "before", "-o", "merged.json"], sides, "1").returncode == 0
    assert (sides / "merged.json").exists()


@pytest.mark.medium
def test_an_error_is_reported_also_if_nothing_is_read(sides):
    pytest.importorskip("scipy")
    (sides / "bench_it.py").write_text(BENCHMARK)
    report = Path(__file__).parents[1] / "data" / "bench_report_v1.json"
    done = run_unread(["bench", "bench_it.py", "-q", "--runs=1", "--baseline", str(report)], sides)
    assert done.returncode == 2
    assert done.stderr.startswith("collector: ")


@pytest.mark.slow
@pytest.mark.parametrize(("output", "unbuffered"), [("unread", ""), ("unread", "1"), ("full", "1")])
def test_a_benchmark_is_stored_also_if_nothing_is_read(output, unbuffered, tmp_path):
    pytest.importorskip("scipy")
    (tmp_path / "bench_it.py").write_text(BENCHMARK)
    words = ["bench", "bench_it.py", "-q", "--runs=1", *(f"--{each}=out.{each}" for each in DOCUMENTS)]
    if output == "unread":
        done = run_unread(words, tmp_path, unbuffered)
        assert (done.returncode, done.stderr) == (0, "")
    else:
        with Path("/dev/full").open("w") as full:
            assert run(words, full, tmp_path, unbuffered).returncode == 2
    assert all((tmp_path / f"out.{each}").stat().st_size for each in DOCUMENTS)


@pytest.mark.slow
def test_stored_benchmarks_are_compared_also_if_nothing_is_read(tmp_path):
    pytest.importorskip("scipy")
    for name, mean in (("before", "20_000"), ("now", "30_000")):
        (tmp_path / "bench_it.py").write_text(BENCHMARK.replace("20_000", mean))
        assert (
            run(
                ["bench", "bench_it.py", "-q", "--runs=1", "--json", f"{name}.json"], subprocess.DEVNULL, tmp_path
            ).returncode
            == 0
        )
    done = run_unread(["bench", "compare", "before.json", "now.json", "--csv=out.csv"], tmp_path, "1")
    assert (done.returncode, done.stderr) == (1, "")
    assert (tmp_path / "out.csv").exists()
