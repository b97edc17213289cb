"""`collector bench` and the `gpu_benchmark` fixture, on the simulated card."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import numpy as np
import pytest
from report_pages import page_of

from collector.bench.benchmark_report import Report
from collector.cli import main

pytest.importorskip("scipy.stats")  # imported before any run of pytest in this process, which drops its imports

pytestmark = pytest.mark.simulator
pytest_plugins = ["pytester"]

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


@pytest.mark.slow
def test_the_example_runs_where_there_is_no_gpu(root, capsys, tmp_path):
    plot, tables = tmp_path / "out.html", tmp_path / "tables.html"
    example = str(root / "examples" / "bench_saxpy.py")
    status = main(["bench", example, "--seed", "1", "--plot", str(plot), "--html", str(tables)])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert "saxpy[n=16777216]" in printed.out
    assert "simulated" in printed.out
    assert plot.stat().st_size > 10_000
    assert "saxpy[n=16777216]" in str(page_of(tables))


@pytest.mark.medium
@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_measured_rounds_are_added_to_a_dataset(runs, bench_file, capsys, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset

    monkeypatch.setenv("COLLECTOR_RUN", "tuesday")
    words = ["bench", bench_file(), "-q", f"--runs={runs}", "--dataset", str(tmp_path / "runs"), "--seed=1"]
    assert main(words) == 0, capsys.readouterr().err
    dataset = Dataset(tmp_path / "runs")
    assert {key.run for key in dataset.keys} == {"tuesday"}
    assert set(dataset.table("steps")["name"].to_pylist()) == {"scale[n=1]", "scale[n=2]"}
    names = dataset.table("kernels", columns=["name"])["name"].to_pylist()
    assert names.count("a") >= runs * 2 * 20
    assert {"a", "b"} <= set(names)


def test_a_dataset_that_cannot_be_written_costs_no_figures(bench_file, capsys, tmp_path):
    pytest.importorskip("pyarrow")
    meanwhile = f"\nopen({str(tmp_path / 'file')!r}, 'w').close()\n"
    assert main(["bench", bench_file(more=meanwhile), "-q", "--dataset", str(tmp_path / "file")]) == 1
    printed = capsys.readouterr()
    assert "scale[n=1] is not in the dataset: cannot make" in printed.err
    assert "scale[n=2]" in printed.out


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--precision=0", "argument --precision: '0' is not a share above 0, such as 0.5% or 0.005"),
        ("--precision=2", "argument --precision: '2' is not a share such as 3% or 0.03"),
        ("--max-seconds=0", "argument --max-seconds: '0' is no time to measure in"),
    ],
)
def test_an_impossible_option_is_one_line(bench_file, capsys, option, message):
    with pytest.raises(SystemExit) as end:
        main(["bench", bench_file(), option])
    assert end.value.code == 2
    assert capsys.readouterr() == ("", f"collector: {message} (see: collector bench --help)\n")


def test_the_help_states_the_defaults(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "stop when half the interval of every ratio is within this (the benchmark's own, else 0.5%)" in printed
    assert "time limit of one comparison (the benchmark's own, else 30)" in printed


def test_a_folder_of_something_else_is_no_dataset_and_nothing_is_measured(bench_file, capsys, tmp_path):
    pytest.importorskip("pyarrow")
    assert main(["bench", bench_file(), "-q", "--dataset", str(tmp_path)]) == 2
    line = f"collector: {tmp_path} is not a dataset, and not empty. Name a folder that does not exist yet\n"
    assert capsys.readouterr() == ("", line)


@pytest.mark.medium
def test_a_regression_is_status_1_and_the_same_again_is_0(bench_file, capsys, tmp_path):
    baseline = str(tmp_path / "main.json")
    once = ("--baseline", baseline, "--runs=1")
    assert main(["bench", bench_file(), "--json", baseline, "--runs=1"]) == 0
    assert [each.title for each in Report.load(baseline).comparisons] == ["scale[n=1]", "scale[n=2]"]
    assert main(["bench", bench_file(), *once]) == 0
    capsys.readouterr()
    assert main(["bench", bench_file(12_000), *once, "--fail-above", "3%", "-k", "n=2"]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"scale\[n=2\] b .* 1\.14\d\d ", printed)
    assert printed.count("REGRESSION") == 1
    assert main(["bench", bench_file(12_000), *once, "--fail-above", "20%"]) == 0
    printed = capsys.readouterr().out
    assert "now over before (a regression is slower by more than 20 %)" in printed
    assert re.search(r"scale\[n=2\] b .* slower +1\.14\d\d$", printed, re.MULTILINE)


@pytest.mark.slow
def test_a_job_shows_figures_changes_and_regressions_on_its_page(bench_file, capsys, tmp_path, monkeypatch):
    page = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    stored = tmp_path / "before.json"
    assert main(["bench", bench_file(), "--quiet", "--json", str(stored)]) == 0
    assert page.read_text().count("## collector bench\n") == 1  # and none of the processes of its runs
    capsys.readouterr()
    assert main(["bench", bench_file(mean_b=12_600), "--quiet", "--baseline", str(stored), "--fail-above", "3%"]) == 1
    titles = [line for line in page.read_text().splitlines() if line.startswith("## ")]
    assert titles == ["## collector bench", "## collector bench", "## collector bench: changes"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert [line.split(" takes ")[0] for line in lines] == [
        f"::error title=collector bench::scale[n={n}] b" for n in (1, 2)
    ], lines


@pytest.mark.medium
def test_stored_reports_are_compared_without_measuring(bench_file, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")  # the folder's name is not folded
    before, now = str(tmp_path / "before.json"), str(tmp_path / "now.json")
    table, figures = tmp_path / "changes.md", tmp_path / "changes.csv"
    assert main(["bench", bench_file(), "--json", before, "--runs=1"]) == 0
    assert main(["bench", bench_file(12_000), "--json", now, "--runs=1"]) == 0
    capsys.readouterr()
    compare = ["bench", "compare", before, now]
    assert main([*compare, "--markdown", str(table), "--csv", str(figures)]) == 1
    printed = capsys.readouterr().out
    assert f"Against {before}" in printed
    assert printed.count("REGRESSION") == printed.count(" b ") == 2
    assert printed.count("no change seen") == printed.count(" a ") == 2
    assert table.read_text().count("REGRESSION") == 2
    rows = {(row["benchmark"], row["arm"]): row for row in csv.DictReader(io.StringIO(figures.read_text()))}
    changed = rows["scale[n=2]", "b"]
    assert float(changed["ratio"]) == pytest.approx(12_000 / 10_500, rel=0.01)
    assert float(changed["now"]) / float(changed["before"]) == pytest.approx(float(changed["ratio"]))
    assert main([*compare, "--fail-above=20%"]) == 0
    assert main(["bench", "compare", now, before]) == 0
    assert "faster" in capsys.readouterr().out


@pytest.mark.medium
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda report: report["comparisons"].pop(), "scale[n=2] was not measured"),
        (lambda report: report["comparisons"][0]["arms"].pop("b"), "scale[n=1]: arm b was not measured"),
        (
            lambda report: report["comparisons"][0]["failures"].update(
                b=report["comparisons"][0]["arms"].pop("b") and "boom"
            ),
            "scale[n=1]: b: boom",
        ),
    ],
)
def test_a_report_without_figures_of_the_other_is_a_regression(bench_file, capsys, tmp_path, change, why):
    before, now = tmp_path / "before.json", tmp_path / "now.json"
    assert main(["bench", bench_file(), "--json", str(before), "--runs=1"]) == 0
    report = json.loads(before.read_text())
    change(report)
    now.write_text(json.dumps(report))
    capsys.readouterr()
    assert main(["bench", "compare", str(before), str(now)]) == 1
    assert capsys.readouterr().err == f"collector: {why}\n"
    assert main(["bench", "compare", str(now), str(before)]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.json"], "compare takes two reports, and not 1. collector bench compare BEFORE.json NOW.json"),
        (["a.json", "b.json", "c.json"], "and not 3"),
        (
            ["a.json", "b.json"],
            "cannot read a.json: there is no file of this name. collector bench --json FILE writes a report",
        ),
        ([".", "."], "cannot read .: Is a directory"),
        (["a.json", "b.json", "--seed=0"], "compare measures nothing, so --seed cannot be used with it"),
        (["a.json", "b.json", "-k=x", "--runs=3"], "so -k, --runs cannot be used with it"),
        (["a.json", "b.json", "--csv=a.json"], "cannot"),
    ],
)
def test_what_cannot_be_compared_is_reported_in_one_line(words, message, capsys):
    assert main(["bench", "compare", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.medium
def test_tables_are_written_as_markdown_and_figures_as_csv(bench_file, capsys, tmp_path):
    table, figures = tmp_path / "out.md", tmp_path / "out.csv"
    file = bench_file(more=BAD_ARM)
    assert main(["bench", file, "-k", "n=2|bad", "--markdown", str(table), "--csv", str(figures)]) == 1
    capsys.readouterr()
    assert "### scale\\[n=2\\]" in table.read_text()
    assert "not measured: arm 'idle': it launches nothing" in table.read_text()
    rows = list(csv.DictReader(io.StringIO(figures.read_text())))
    assert [(row["benchmark"], row["n"], row["arm"]) for row in rows] == [
        ("scale", "2", "a"), ("scale", "2", "b"), ("bad", "", "good"), ("bad", "", "idle"),
    ]  # fmt: skip
    assert float(rows[0]["estimate"]) == pytest.approx(20_000, rel=0.01)
    assert float(rows[1]["mean_ratio"]) == pytest.approx(1.05, rel=0.01)
    assert "it launches nothing" in rows[3]["not_measured"]


DRIFTING = """
from pathlib import Path
from collector import bench

@bench.benchmark(precision=0.02, max_rounds=60)
def drifting():
    counter = Path(__file__).with_name("count")
    number = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(number + 1))
    card_is_slower = [1.0, 1.06, 0.97, 1.04][number]
    with bench.SimulatedCard(seed=number) as card:
        yield bench.case({"a": card.kernel("a", 10_000 * card_is_slower, noise=0.001)}, gpu=card)
"""


@pytest.mark.slow
def test_what_differs_from_run_to_run_is_no_regression(tmp_path, capsys):
    path, baseline = tmp_path / "bench_it.py", str(tmp_path / "main.json")
    path.write_text(DRIFTING)
    assert main(["bench", str(path), "--json", baseline]) == 0
    before = Report.load(baseline).comparison
    medians = [float(np.median(run)) for run in before.runs("a")]
    assert len(medians) == 3
    assert max(medians) > 1.03 * min(medians)
    assert main(["bench", str(path), "--baseline", baseline, "--runs=1", "--fail-above=0%"]) == 0
    assert "no change seen" in capsys.readouterr().out


@pytest.mark.slow
def test_the_processes_of_runs_take_options_from_the_command_alone(bench_file, capsys, tmp_path, monkeypatch):
    """What the project states is taken once: not where the command line says otherwise, and not with --isolated."""
    monkeypatch.chdir(tmp_path)
    project = '[tool.collector.bench]\nbaseline = "missing.json"\nseed = 5\nprecision = "2%"\n'
    (tmp_path / "pyproject.toml").write_text(project)
    measured = ["bench", bench_file(), "-q", "-k", "n=1", "--runs=2"]

    assert main([*measured, "--isolated", "--seed=7", "--json=base.json"]) == 0, capsys.readouterr().err
    isolated = Report.load("base.json").comparison.design
    assert (isolated["seed"], isolated["precision"]) == (7, 0.01)  # of the command line, and of the file

    status = main([*measured, "--baseline=base.json", "--json=now.json"])
    printed = capsys.readouterr()
    assert "Against base.json" in printed.out, printed.err
    assert (status, printed.err) == (0, "")
    of_project = Report.load("now.json").comparison.design
    assert (of_project["seed"], of_project["precision"]) == (5, 0.02)


@pytest.mark.parametrize("runs", ["0", "x", "-1"])
def test_a_number_of_runs_that_is_none_is_refused(runs, bench_file, capsys):
    with pytest.raises(SystemExit):
        main(["bench", bench_file(), f"--runs={runs}"])
    assert "is not a number of runs" in capsys.readouterr().err


@pytest.mark.medium
@pytest.mark.parametrize("runs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_what_cannot_be_measured_is_named_and_the_rest_reported(runs, bench_file, capsys):
    assert main(["bench", bench_file(more=BAD_ARM), "--runs", runs]) == 1
    printed = capsys.readouterr()
    assert "scale[n=2]" in printed.out
    assert "arm 'idle': it launches nothing" in printed.out
    assert printed.err == "collector: worse: benchmark worse raised OSError: no disk\n"


WORSE = """
from collector import bench

@bench.benchmark(clock="returned", max_rounds=30)
def good():
    return {"a": lambda: 5.0}

@bench.benchmark
def worse():
    raise OSError("no disk")
"""


def test_a_benchmark_that_cannot_release_its_inputs_keeps_its_figures(tmp_path, capsys):
    file = tmp_path / "bench_it.py"
    text = WORSE.partition("@bench.benchmark\n")[0].rstrip().replace("return {", "yield {")
    file.write_text(f"{text}\n    raise OSError('busy')\n")
    assert main(["bench", str(file)]) == 1
    printed = capsys.readouterr()
    assert "30 rounds" in printed.out
    assert printed.err == "collector: good: benchmark good raised OSError after its case: busy\n"


@pytest.mark.parametrize("runs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_benchmark_may_change_the_working_directory(runs, tmp_path, monkeypatch, capsys):
    moves = "import os, pathlib; os.chdir(pathlib.Path(__file__).parent / 'data')\n"
    (tmp_path / "data").mkdir()
    for name in ("first", "second"):
        text = WORSE.partition("@bench.benchmark\n")[0].replace("good", name)
        (tmp_path / f"bench_{name}.py").write_text(moves + text)
    monkeypatch.chdir(tmp_path)
    files = ["bench_first.py", "bench_second.py"]
    assert main(["bench", *files, "--runs", runs, "--json", "r.json", "--csv", "r.csv"]) == 0
    assert capsys.readouterr().err == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [*files, "data", "r.csv", "r.json"]
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.slow
def test_a_run_that_could_not_measure_everything_is_status_1_at_a_terminal_too(tmp_path, capfd, monkeypatch):
    """There the processes of the runs write to standard error themselves."""
    file = tmp_path / "bench_it.py"
    file.write_text(WORSE)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["bench", str(file), "--runs", "2"]) == 1
    printed = capfd.readouterr()
    assert "in 2 runs" in printed.out
    assert printed.err.count("collector: worse: benchmark worse raised OSError: no disk\n") == 2
    assert "collector: run 1 ended with status 1\ncollector: run 2 ended with status 1\n" in printed.err


BAD_OPTION = """
@bench.benchmark
def nan():
    with bench.SimulatedCard() as card:
        yield bench.case({"a": card.kernel("a", 1_000)}, gpu=card, flops=float("nan"))

@bench.benchmark
def misspelt():
    with bench.SimulatedCard() as card:
        yield bench.case({"a": card.kernel("a", 1_000)}, gpu=card, flop=1)
"""


def test_an_option_that_cannot_be_costs_no_other_benchmark_its_figures(bench_file, capsys):
    assert main(["bench", bench_file(more=BAD_OPTION), "-k", "n=2|nan|misspelt"]) == 1
    printed = capsys.readouterr()
    assert "scale[n=2]" in printed.out
    assert "collector: nan: ValueError: flops is nan: a positive number is needed\n" in printed.err
    # CPython 3.14 adds a proposal.
    assert "collector: misspelt: TypeError: compare() got an unexpected keyword argument 'flop'" in printed.err


@pytest.mark.parametrize(
    "options",
    [["--baseline", "missing.json"], ["-k", "nowhere"], ["--json", "no/such/folder/r.json"]],
    ids=["baseline", "pattern", "output"],
)
def test_trouble_is_one_line_and_status_2_before_anything_is_measured(options, bench_file, capsys):
    assert main(["bench", bench_file(), *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--csv", "--markdown", "--html", "--plot"])
@pytest.mark.parametrize("read", ["bench_it.py", "main.json"])
def test_no_document_is_written_over_a_benchmark_or_the_baseline(read, option, bench_file, capsys, tmp_path, root):
    path, baseline = bench_file(), tmp_path / "main.json"
    baseline.write_bytes((root / "tests" / "data" / "bench_report_v1.json").read_bytes())
    given, output = [str(tmp_path) if read.endswith(".py") else path], tmp_path / read
    content = output.read_bytes()
    assert main(["bench", *given, "--baseline", str(baseline), option, str(output)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "",
        f"collector: cannot write {output}: it is an input. Give the output another name\n",
    )
    assert output.read_bytes() == content


@pytest.mark.medium
def test_a_baseline_of_another_card_or_schema_is_refused_unless_the_card_is_allowed(bench_file, capsys, tmp_path):
    path = tmp_path / "main.json"
    file = bench_file()
    assert main(["bench", file, "--json", str(path), "--runs=1", "-k", "n=1"]) == 0
    text = path.read_text()
    path.write_text(text.replace("GPU-00000000", "GPU-11111111"))
    now = ["bench", file, "--baseline", str(path), "--runs=1", "-k", "n=1"]
    assert main(now) == 2
    assert "the baseline is of another card" in capsys.readouterr().err
    assert main([*now, "--allow-other-machine"]) == 0
    path.write_text(text.replace('"version": 1', '"version": 7'))
    capsys.readouterr()
    assert main(now) == 2
    assert "version 7 of the schema, this program reads 1" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["x", "-1%", "200%"])
def test_a_threshold_that_is_no_share_is_refused(share, bench_file, capsys):
    with pytest.raises(SystemExit):
        main(["bench", bench_file(), f"--fail-above={share}"])
    assert "is not a share such as 3%" in capsys.readouterr().err


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


def run_pytest(pytester, *options, **variables):
    """The exit status and the output of pytest with the fixture alone.

    Without xdist it runs in this process: scipy's import takes most of the time of a run.
    """
    run = pytester.runpytest_subprocess if "xdist" in options else pytester.runpytest_inprocess
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200", **variables}.items():
            environment.setenv(name, value)
        quiet = ("-q", "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
        result = run("-p", "collector.bench.pytest_fixture", "-p", "no:cacheprovider", *quiet, *options)
    return result.ret, result.stdout.str()


@pytest.mark.slow
def test_the_fixture_holds_tests_against_stored_baselines(pytester):
    (pytester.path / "test_it.py").write_text(TEST_FILE)

    def run(mean_ns, *options):
        return run_pytest(pytester, *options, MEAN_NS=str(mean_ns))

    status, printed = run(10_000, "--gpu-benchmark-save=base")
    assert status == 1
    assert "1 failed, 1 passed" in printed
    assert "arm 'idle': it launches nothing" in printed
    assert [path.name for path in (pytester.path / "base").iterdir()] == ["test_it.py_test_kernel.json"]
    run(10_050, "--gpu-benchmark-save=base", "-k", "test_kernel")
    assert len(Report.load(pytester.path / "base" / "test_it.py_test_kernel.json").comparison.run_rounds) == 2
    assert "1 failed, 1 passed" in run(10_100, "--gpu-benchmark-baseline=base")[1]
    status, printed = run(12_000, "--gpu-benchmark-baseline=base", "-k", "test_kernel")
    assert status == 1
    assert "slower than the baseline: call: 1.19" in printed
    status, printed = run(12_000, "--gpu-benchmark-baseline=base", "--gpu-benchmark-fail-above=0.3", "-k", "kernel")
    assert status == 0
    assert "not compared with a baseline" not in printed
    for workers in ((), ("-p", "xdist", "-n2")):
        if workers:
            pytest.importorskip("xdist")
        status, printed = run(12_000, "--gpu-benchmark-baseline=empty", "-k", "kernel", *workers)
        assert status == 0
        assert re.search(
            r"not compared with a baseline.*\nempty/test_it.py_test_kernel.json: there is no report$", printed, re.M
        )
        assert printed.count("test_kernel.json") == 1


@pytest.mark.slow
def test_each_rank_has_a_folder_of_reports_of_its_own(pytester):
    (pytester.path / "test_it.py").write_text("""
def test_steady(gpu_benchmark):
    gpu_benchmark(lambda: 5.0, clock="returned", max_rounds=30)
""")
    ranks = {"RANK": "3", "WORLD_SIZE": "4"}
    assert run_pytest(pytester, "--gpu-benchmark-save=base-{rank}", **ranks)[0] == 0
    assert [path.name for path in (pytester.path / "base-3").iterdir()] == ["test_it.py_test_steady.json"]
    status, printed = run_pytest(pytester, "--gpu-benchmark-baseline=base-{rank}", **ranks)
    assert status == 0
    assert "not compared" not in printed


@pytest.mark.parametrize("option", ["--gpu-benchmark-save", "--gpu-benchmark-baseline"])
def test_a_placeholder_without_a_value_ends_the_run_before_the_first_test(pytester, capfd, option):
    assert run_pytest(pytester, f"{option}=base-{{rnk}}")[0] == pytest.ExitCode.USAGE_ERROR
    assert capfd.readouterr().err.count("{rnk} is not a placeholder; did you mean {rank}?") == 1


@pytest.mark.slow
def test_folders_of_reports_are_those_where_pytest_began(pytester):
    (pytester.path / "test_it.py").write_text("""
def test_moves(gpu_benchmark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gpu_benchmark(lambda: 5.0, clock="returned", max_rounds=30)
""")
    status, printed = run_pytest(pytester, "--gpu-benchmark-save=base")
    assert status == 0, printed
    assert [path.name for path in (pytester.path / "base").iterdir()] == ["test_it.py_test_moves.json"]
    status, printed = run_pytest(pytester, "--gpu-benchmark-baseline=base")
    assert status == 0
    assert "not compared" not in printed
    status, printed = run_pytest(pytester, "--gpu-benchmark-save=test_it.py/base")
    assert status == 1
    assert "the report of test_it.py::test_moves cannot be stored: " in printed
    assert "Traceback" not in printed
    assert "pathlib" not in printed


ARMS_FILE = """
import os
from collector import bench

def test_arms(gpu_benchmark):
    with bench.SimulatedCard(seed=1) as card:
        given = (each.split("=") for each in os.environ["ARMS"].split())
        arms = {name: card.kernel(name, float(mean_ns)) for name, mean_ns in given}
        gpu_benchmark(arms, gpu=card, seed=1, cache=os.environ.get("CACHE", "cold"))
"""


@pytest.mark.slow
def test_an_arm_without_a_baseline_is_named_and_enters_the_stored_report(pytester):
    (pytester.path / "test_it.py").write_text(ARMS_FILE)
    file = pytester.path / "base" / "test_it.py_test_arms.json"
    place = "base/test_it.py_test_arms.json: test_arms"

    def run(option, arms, **variables):
        status, printed = run_pytest(pytester, option, ARMS=arms, **variables)
        return status, [
            line for line in printed.splitlines() if line.startswith(("base/", "=")) and "passed" not in line
        ]

    def stored():
        comparison = Report.load(file).comparison
        return list(comparison.arms), len(comparison.runs(comparison.reference)), dict(comparison.failures)

    save, compare = "--gpu-benchmark-save=base", "--gpu-benchmark-baseline=base"
    assert run(save, "old=5000 mid=5000") == (0, [])
    assert run(save, "old=5000 mid=5000") == (0, [])
    assert stored() == (["old", "mid"], 2, {})
    status, lines = run(compare, "old=5000 new=5000")
    assert status == 0
    assert "not compared with a baseline" in lines[0]
    assert lines[1:] == [
        f"{place}: arm mid of the baseline was not measured",
        f"{place}: arm new is not in the baseline",
    ]
    status, lines = run(save, "old=5000 mid=5000 new=5000")
    assert status == 0
    assert "stored reports that were replaced" in lines[0]
    assert lines[1:] == [f"{place}: arm new is not in the baseline"]
    assert stored() == (["old", "mid", "new"], 1, {})
    assert run(save, "old=5000 mid=5000 new=5000") == (0, [])
    assert stored() == (["old", "mid", "new"], 2, {})
    status, _ = run(compare, "old=5000 mid=5000 new=8000")
    assert status == 1
    status, lines = run(save, "old=5000 mid=5000 new=5000", CACHE="hot")
    assert lines[1:] == [f"{place}: cache is hot now and was cold"]
    assert stored()[1] == 1


NAMED_FILE = """
import os, pytest
from collector import bench

@pytest.mark.parametrize("shape", {shapes}, ids=str)
def test_mm(gpu_benchmark, shape):
    with bench.SimulatedCard(seed=1) as card:
        gpu_benchmark(card.kernel("k", {mean_ns} * float(os.environ.get("SLOWER", "1"))), gpu=card, seed=1)
"""


@pytest.mark.slow
def test_tests_whose_ids_give_one_file_name_have_a_file_each(pytester):
    (pytester.path / "a").mkdir()
    (pytester.path / "a" / "test_b.py").write_text(NAMED_FILE.format(shapes=["1,2", "1_2"], mean_ns=5_000))
    (pytester.path / "a_test_b.py").write_text(NAMED_FILE.format(shapes=["1,2"], mean_ns=20_000))
    for runs in (1, 2):
        status, printed = run_pytest(pytester, "a", "a_test_b.py", "--gpu-benchmark-save=base")
        assert (status, "replaced" in printed) == (0, False)
        found = {file.name: Report.load(file).comparison for file in (pytester.path / "base").iterdir()}
        assert len(found) == 3
        assert "a_test_b.py_test_mm_1_2_.json" in found
        medians = sorted(round(each.arms["call"].median_ns.estimate, -3) for each in found.values())
        assert medians == [5_000, 5_000, 20_000]
        assert [len(each.runs("call")) for each in found.values()] == [runs] * 3
    for name in ("a/test_b.py", "a_test_b.py"):
        assert run_pytest(pytester, name, "--gpu-benchmark-baseline=base")[0] == 0
        status, printed = run_pytest(pytester, name, "--gpu-benchmark-baseline=base", SLOWER="1.2")
        assert (status, "passed" in printed) == (1, False)
    text = (pytester.path / "base" / "a_test_b.py_test_mm_1_2_.json").read_text()
    assert "a/test_b.py" not in text


@pytest.mark.medium
def test_a_test_with_a_long_id_has_a_file_too(pytester):
    (pytester.path / "test_b.py").write_text(NAMED_FILE.format(shapes=["x" * 300], mean_ns=5_000))
    assert run_pytest(pytester, "--gpu-benchmark-save=base")[0] == 0
    status, printed = run_pytest(pytester, "--gpu-benchmark-baseline=base")
    assert (status, "not compared" in printed) == (0, False)
