"""Reports: saved, loaded, refused, shown, compared with a baseline; benchmarks found in files."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("scipy")

from report_pages import page_of

from collector import bench
from collector.bench.benchmark_report import Arm, Comparison, Report, joined
from collector.bench.calls import activities_of_calls, call_name
from collector.bench.discovery import discover
from collector.bench.plot import page, save_plot
from collector.bench.report_tables import amount_text, as_text, figures, how
from collector.errors import InvalidFileError
from collector.web.table_page import write_benchmark_page

DESIGN = {"clock": "cupti", "cache": "cold", "graph_calls": 0, "precision": 0.005, "seed": 7, "same_within": 0.01}
CARD = {"gpu": "Card & Co", "gpu_uuid": "GPU-1", "simulated": False, "driver_version": 13000}


def arm(mean, seed=0, count=60, **more):
    times = (mean * np.random.default_rng(seed).lognormal(0, 0.01, count)).tolist()
    return Arm(times_ns=times, kernels=["k"], launches=1, kernel_ns={"k": times}, **more)


def comparison(slower=1.0, **more):
    values = {"name": "saxpy", "parameters": {"n": 256}, "design": DESIGN, "rounds": 60, "stopped_by": "precision"}
    arms = {"a": arm(10_000), "b<2>": arm(10_000 * slower, seed=1)}
    return Comparison(arms=arms, reference="a", **{**values, **more})


def report(*comparisons, **environment):
    return Report(list(comparisons) or [comparison()], {**CARD, **environment})


def test_a_report_comes_back_from_its_file(tmp_path):
    made = report(comparison(1.2, flops=1e6, bytes=1e4, failures={"c": "arm 'c': bad"}, warnings=["mind"]))
    made.save(tmp_path / "r.json")
    loaded = Report.load(tmp_path / "r.json")
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "r.json").read_bytes()
    assert str(loaded) == str(made)
    assert loaded.comparison.ratios == made.comparison.ratios
    content = json.loads((tmp_path / "r.json").read_text())
    assert (content["schema"], content["version"]) == ("collector-bench", 1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda text: "",
            r"it is not JSON \(.*\)\. collector bench --json FILE writes a report$",
        ),
        (lambda text: "[" * 100_000, r"it is not JSON \(.*\)\. collector bench --json FILE writes"),
        (lambda text: "\udcae", r"is not a benchmark report: it is not text\. collector bench --json FILE writes"),
        (lambda text: "[1]", r"no schema 'collector-bench'\. collector bench --json FILE writes"),
        (lambda text: text.replace("collector-bench", "other"), "no schema"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "version 2"),
        (lambda text: text.replace('"reference": "a"', '"reference": "z"'), "reference 'z'"),
        (lambda text: re.sub(r'("times_ns": \[\s*)[\d.]+', r"\1NaN", text, count=1), "NaN is not a number"),
        (lambda text: re.sub(r'("times_ns": \[\s*)[\d.]+', r"\1-5", text, count=1), "is not a positive number"),
        (lambda text: re.sub(r'("times_ns": \[\s*)[\d.]+,', r"\1", text, count=1), "samples"),
        (lambda text: text.replace('"arms"', '"legs"'), "damaged"),
        (lambda text: text.replace('"run_rounds": []', '"run_rounds": [1, 2]'), "runs of"),
    ],
    ids=[
        "empty",
        "nested",
        "bytes",
        "list",
        "schema",
        "version",
        "reference",
        "nan",
        "negative",
        "unequal",
        "no-arms",
        "runs",
    ],
)
def test_a_file_that_is_no_report_is_refused(damage, message, tmp_path):
    path = tmp_path / "r.json"
    report().save(path)
    text = path.read_text()
    damaged = damage(text)
    assert damaged != text
    path.write_text(damaged, errors="surrogateescape")
    with pytest.raises(InvalidFileError, match=message):
        Report.load(path)


def test_rates_and_the_share_of_the_roof():
    one = Comparison(
        arms={"a": Arm(times_ns=[1_000.0] * 9)},
        reference="a",
        flops=2e6,
        bytes=1e6,
        ceilings={"flop_per_s": 1e13, "bytes_per_s": 4e12},
    )
    assert one.flop_per_s("a") == pytest.approx(2e12)
    assert one.bytes_per_s("a") == pytest.approx(1e12)
    assert one.share_of_roof("a") == pytest.approx(0.25)


def test_the_table_shows_figures_failures_warnings_and_how_it_was_measured():
    made = report(comparison(1.2, failures={"c": "arm 'c': it raised"}, warnings=["mind the gap"]))
    text = as_text(made, width=160)
    row = next(line for line in text.splitlines() if "b<2>" in line)
    assert re.search(
        r"b<2>\s+1\d(?:\.\d+)? µs\s+±0\.\d\d%\s+1\.\d{4}\s+1\.\d{4}\.\.1\.\d{4}\s+slower\s+1\.\d{4}\s+"
        r"[\d.]+ µs\s+\d+\s+1\s+0\s+0",
        row,
    )
    assert "saxpy[n=256]" in text
    assert "arm 'c': it raised" in text
    assert "mind the gap" in text
    assert "CUPTI" in text
    assert "seed 7" in text
    assert "precision of 0.50% reached" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(17.312, "17.31 ns"), (0.4, "0.4 ns"), (999.96, "1000 ns"), (500, "500 ns"), (1603, "1.603 µs")],
)
def test_a_time_below_a_microsecond_has_four_digits_as_longer_ones_have(value, shown):
    """A sample of a clock of the host is the mean of many calls: the modes of a note may differ by less than 1 ns."""
    assert amount_text(value, "ns") == shown


def test_a_prompt_shows_a_report_in_one_line():
    made = report(comparison(), comparison(name="", parameters={}))
    assert repr(made) == "<Report: saxpy[n=256]; a, b<2>>"
    assert len(repr(made.comparisons[0])) < 2_000  # without its samples


def test_verdicts_are_corrected_over_all_comparisons_of_a_report():
    many = report(*[comparison(1.3, name=str(index)) for index in range(3)], comparison(1.0))
    assert [set(each.values()) for each in many.verdicts] == [{"slower"}] * 3 + [{"same"}]


@pytest.mark.medium
def test_samples_as_a_data_frame():
    pytest.importorskip("pandas")
    frame = report(comparison(), comparison(parameters={"n": 512})).to_pandas()
    assert list(frame.columns) == ["benchmark", "n", "arm", "round", "time_ns"]
    assert len(frame) == 4 * 60
    assert frame.groupby(["n", "arm"]).time_ns.median().loc[(256, "a")] == pytest.approx(10_000, rel=0.01)


@pytest.mark.medium
def test_axes_are_columns_beside_those_of_the_samples():
    pytest.importorskip("pandas")
    axes = {"arm": "x", "round": "y", "time_ns": "z", "bytes": 1}
    frame = report(comparison(parameters=axes), comparison(name="memory", unit="bytes")).to_pandas()
    assert set(frame.arm) == {"a", "b<2>"}
    first = frame[frame.benchmark == "saxpy"]
    assert [set(first[f"axis {axis}"]) for axis in axes] == [{value} for value in axes.values()]
    assert first.time_ns.median() == pytest.approx(10_000, rel=0.01)


@pytest.mark.medium
def test_a_stored_report_is_a_data_frame_in_one_call(tmp_path):
    pytest.importorskip("pandas")
    stored = report(comparison(), comparison(name="memory", unit="bytes"))
    stored.save(tmp_path / "r.json")
    frame = bench.read_pandas(tmp_path / "r.json")
    assert frame.equals(stored.to_pandas())
    assert list(frame.columns) == ["benchmark", "n", "arm", "round", "time_ns", "bytes"]
    assert frame[frame.benchmark == "memory"].time_ns.isna().all()
    assert frame[frame.benchmark == "memory"].bytes.notna().all()


def test_reports_of_two_cards_are_not_joined():
    assert len(joined([report(), report()]).comparisons) == 2
    with pytest.raises(bench.BenchmarkError, match="different cards"):
        joined([report(), report(gpu_uuid="GPU-2")])


@pytest.mark.medium
def test_the_plot_is_one_page_that_needs_nothing_else(tmp_path):
    made = report(comparison(), comparison(parameters={"n": 512}), comparison(parameters={"n": 1024}))
    save_plot(made, tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert text == page(made)
    assert not re.search(r"(?:src|href)\s*=|https?:|@import|url\(", text)
    pictures = [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    assert len(pictures) == 4
    assert len(pictures[0].findall("polyline")) == 2
    assert all(len(each.findall(".//circle")) == 120 for each in pictures[1:])
    assert "b&lt;2&gt;" in text
    assert "b<2>" not in text


def test_the_tables_are_in_the_page_of_reports(tmp_path):
    made = report(comparison(failures={"c": "arm 'c': bad"}), comparison(parameters={"n": 512}, warnings=["mind"]))
    write_benchmark_page(made, tmp_path / "p.html")
    data = page_of(tmp_path / "p.html")
    assert data["title"] == "Card & Co"
    for each, results, table in zip(made.comparisons, made.results, data["tables"], strict=True):
        assert table["title"] == each.title
        expected = figures(each, results)
        assert [list(row) for row in zip(*table["answer"]["values"], strict=True)] == [*map(list, expected.rows)]
        names = [column["name"] for column in table["answer"]["columns"]]
        assert names[:6] == ["arm", "median", "95 %", "ratio", "ratio 95 %", "verdict"]
        assert table["lines"][-1] == how(each)
    assert "not measured: arm 'c': bad" in data["tables"][0]["lines"]
    assert "warning: mind" in data["tables"][1]["lines"]
    assert "b<2>" not in (tmp_path / "p.html").read_text()
    assert made._repr_html_() == f"<pre>{html.escape(str(made))}</pre>"


def test_a_slower_arm_is_a_regression_only_beyond_threshold_and_interval():
    before = report(comparison())
    (a, b), notes = bench.regressions(report(comparison(1.05)), before, fail_above=0.03)
    assert (a.failed, b.failed) == (False, True)
    assert notes == ["one run each: how runs differ is not known and taken to be 1%; measure several (--runs)"]
    assert not any(each.failed for each in bench.regressions(report(comparison(1.05)), before, fail_above=0.08)[0])
    assert not any(each.failed for each in bench.regressions(report(comparison(0.9)), before, fail_above=0.0)[0])


def test_a_baseline_of_another_card_is_an_error_unless_allowed():
    with pytest.raises(bench.BenchmarkError, match=r"another card.*GPU-2.*--allow-other-machine"):
        bench.regressions(report(), report(gpu_uuid="GPU-2"))
    assert len(bench.regressions(report(), report(gpu_uuid="GPU-2"), allow_other_machine=True)[0]) == 2


def test_what_a_baseline_does_not_have_in_common_is_reported():
    hot = comparison(parameters={"n": 512}, design={**DESIGN, "cache": "hot"})
    now = report(comparison(), comparison(parameters={"n": 512}), comparison(name="new"))
    found, notes = bench.regressions(now, report(comparison(), hot, driver_version=12000))
    assert len(found) == 2
    assert notes == [
        "saxpy[n=512]: cache is cold now and was hot",
        "new[n=256] is not in the baseline",
        "the baseline was measured with another driver",
        "one run each: how runs differ is not known and taken to be 1%; measure several (--runs)",
    ]
    with pytest.raises(bench.BenchmarkError, match="nothing in common"):
        bench.regressions(report(comparison(name="new")), report())


BENCHES = """
from collector import bench

@bench.benchmark(precision=0.1)
@bench.parametrize("n", [1, 2])
@bench.parametrize("kind", ["x", "y"])
def grid(n, kind):
    return bench.case({"a": lambda: n}, seed=n)

@bench.parametrize("n", [3])
@bench.benchmark
def single(n):
    closed.append("set up")
    try:
        yield {"a": lambda: n}
    finally:
        closed.append("closed")

@bench.benchmark
def wrong():
    return 5

@bench.benchmark
def broken():
    raise KeyError("gone")

closed = []
def helper(): pass
"""


def test_benchmarks_are_found_with_every_point_of_their_axes(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "bench_all.py").write_text(BENCHES)
    (tmp_path / "other.py").write_text("raise SystemError('not to be imported')")
    titles = [each.title for each in discover([tmp_path])]
    grid = [f"grid[n={n},kind={kind}]" for n in (1, 2) for kind in "xy"]
    assert titles == [*grid, "single[n=3]", "wrong", "broken"]
    assert [each.title for each in discover([tmp_path], r"n=2|^single")] == [*grid[2:], "single[n=3]"]
    first, *_, single, wrong, broken = discover([tmp_path])
    with first.prepared() as case:
        assert case.options == {"precision": 0.1, "seed": 1}
        assert case.arms["a"]() == 1
    closed = single.benchmark.function.__globals__["closed"]
    with single.prepared() as case:
        assert (case.arms["a"](), closed) == (3, ["set up"])
    assert closed == ["set up", "closed"]
    for instance, message in ((wrong, "wrong gives int"), (broken, "broken raised KeyError")):
        with pytest.raises(bench.BenchmarkError, match=message), instance.prepared():
            pass


@pytest.mark.parametrize(
    ("text", "pattern", "message"),
    [
        ("x = 1", "", "no benchmarks"),
        ("1 / 0", "", "ZeroDivisionError"),
        (BENCHES, "nowhere", "none of 7"),
        (BENCHES, "(", "not a regular expression"),
    ],
    ids=["none", "broken", "unmatched", "pattern"],
)
def test_what_cannot_be_found_is_reported(text, pattern, message, tmp_path):
    file = tmp_path / "bench_it.py"
    file.write_text(text)
    with pytest.raises(bench.BenchmarkError, match=message):
        discover([file], pattern)


ONE_ARM = """
from collector import bench

@bench.benchmark
def copy():
    return {"a": lambda: 1}
"""


def test_two_benchmarks_of_one_title_are_refused(tmp_path):
    """In a report, each would count as a run of the other."""
    for name in ("bench_one.py", "bench_two.py"):
        (tmp_path / name).write_text(ONE_ARM)
    with pytest.raises(bench.BenchmarkError, match=r"have the title copy: in .*bench_one.py and .*bench_two.py"):
        discover([tmp_path])
    one = tmp_path / "bench_one.py"
    one.write_text(ONE_ARM.replace("@bench.benchmark", "@bench.benchmark\n@bench.parametrize('n', [1, 2, '1'])"))
    with pytest.raises(bench.BenchmarkError, match=r"have the title copy\[n=1\]: in [^ ]*bench_one.py\."):
        discover([one])


def test_two_benchmarks_of_one_name_in_a_file_are_refused(tmp_path):
    """The second one takes the first one's name in the module, where only the second would be found."""
    file = tmp_path / "bench_one.py"
    again = ONE_ARM.replace("from collector import bench", "")
    file.write_text(ONE_ARM + again)
    with pytest.raises(bench.BenchmarkError, match=r"have the title copy: in [^ ]*bench_one.py\."):
        discover([file])
    file.write_text(ONE_ARM + "copy = bench.parametrize('n', [1])(copy)")
    assert [each.title for each in discover([file])] == ["copy[n=1]"]


def test_a_benchmark_that_is_given_twice_is_found_once(tmp_path):
    file = tmp_path / "bench_one.py"
    file.write_text(ONE_ARM + "another_name = copy\n")
    assert [each.title for each in discover([tmp_path, file])] == ["copy"]


@pytest.mark.parametrize("ends", ["well", "with an error"])
def test_a_benchmark_continues_after_its_case_has_been_measured(ends, tmp_path):
    file = tmp_path / "bench_it.py"
    file.write_text(
        ONE_ARM.replace("return {", "steps.append('made'); yield {") + "    steps.append('released')\nsteps = []\n"
    )
    (instance,) = discover([file])
    steps = instance.benchmark.function.__globals__["steps"]
    if ends == "well":
        with instance.prepared():
            assert steps == ["made"]
    else:
        with pytest.raises(KeyError), instance.prepared():
            raise KeyError
    assert steps == ["made", "released"]


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("raise OSError('busy')", "benchmark copy raised OSError after its case: busy"),
        ("yield {}", "benchmark copy yields more than one case"),
    ],
    ids=["raises", "yields"],
)
def test_an_end_of_a_benchmark_that_fails_is_reported_unless_the_case_did(end, message, tmp_path):
    file = tmp_path / "bench_it.py"
    file.write_text(ONE_ARM.replace("return {", "yield {") + f"    {end}\n")
    (instance,) = discover([file])
    with pytest.raises(bench.BenchmarkError, match=message), instance.prepared():
        pass
    with pytest.raises(KeyError), instance.prepared():
        raise KeyError


VALUES = """
import enum
import numpy as np
from collector import bench

class Kind(enum.IntEnum):
    FIRST = 1

def relu(): pass
class Plain: pass

@bench.benchmark
@bench.parametrize("value", [(1, 2), relu, Plain, enum, Plain(), np.int64(7), np.float32("inf"), None, Kind.FIRST])
def of(value):
    return {"a": lambda: 5.0, "b": lambda: 5.0}
"""


@pytest.mark.medium
def test_a_title_is_the_same_in_another_process_and_in_a_stored_report(tmp_path):
    file = tmp_path / "bench_it.py"
    file.write_text(VALUES)
    found = discover([file])
    module, kind = found[0].benchmark.function.__module__, found[-1].parameters["value"]
    texts = ["(1, 2)", "relu", "Plain", "enum", f"<{module}.Plain object>", "7", "inf", "None", str(kind)]
    assert [each.title for each in found] == [f"of[value={text}]" for text in texts]
    listing = (
        "from collector.bench.discovery import *; print(*(e.title for e in discover([Path(sys.argv[1])])), sep=';')"
    )
    done = subprocess.run([sys.executable, "-c", listing, file], capture_output=True, text=True, check=True)
    assert done.stdout.strip().split(";") == [each.title for each in found]
    made = joined(
        [
            bench.compare({"a": lambda: 5.0}, clock="returned", max_rounds=30, name="of", parameters=each.parameters)
            for each in found
        ]
    )
    made.save(tmp_path / "r.json")
    titles = [each.title for each in found]
    assert [each.title for each in made.comparisons] == titles
    assert [each.title for each in Report.load(tmp_path / "r.json").comparisons] == titles


@pytest.mark.parametrize("where", ["file", "function", "arm", "arm of a check"])
def test_a_benchmark_that_exits_does_not_end_the_command(where, tmp_path):
    file = tmp_path / "bench_it.py"
    if where == "file":
        file.write_text("raise SystemExit(0)")
        with pytest.raises(bench.BenchmarkError, match=r"cannot import .*bench_it.py: SystemExit: 0"):
            discover([file])
    elif where == "function":
        file.write_text(ONE_ARM.replace("return {", "raise SystemExit(0)  # {"))
        (instance,) = discover([file])
        with pytest.raises(bench.BenchmarkError, match="benchmark copy raised SystemExit: 0"), instance.prepared():
            pass
    else:
        check = bench.allclose() if where == "arm of a check" else None
        arms = {"stays": lambda: 5.0, "exits": lambda: sys.exit(0)}
        report = bench.compare(arms, check=check, clock="returned", max_rounds=30)
        assert report.comparison.failures == {"exits": "arm 'exits': it raised SystemExit: 0"}


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(bench.BenchmarkError, match="No such file or directory"):
        discover([tmp_path / "bench_missing.py"])


@pytest.mark.medium
def test_importing_the_package_or_its_fixture_is_light():
    program = (
        "import sys; import collector.bench, collector.bench.pytest_fixture;"
        "sys.exit(str([m for m in ('numpy', 'scipy', 'rich', 'collector._native') if m in sys.modules] or '') or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_overlapping_activities_of_a_call_are_counted_once():
    from collector.recording.recording import Recording
    from collector.recording.schema import SCHEMA

    def column(table, **values):
        count = len(next(iter(values.values())))
        return {name: np.asarray(values.get(name, np.zeros(count)), dtype=kind) for name, kind in SCHEMA[table].items()}

    empty = {name: column(name, **{key: [] for key in columns}) for name, columns in SCHEMA.items()}
    kernel = "bench-call-of-a-kernel"
    tables = {
        **empty,
        # Call 0: 100..200 and 150..300 overlap, 400..450 apart; call 1: 250..260 in between; the last outside any call.
        "kernels": column(
            "kernels",
            start_ns=[100, 150, 400, 250, 500],
            end_ns=[200, 300, 450, 260, 600],
            correlation_id=[1, 2, 3, 4, 5],
            name_id=[2, 2, 2, 2, 2],
        ),
        "external_correlations": column(
            "external_correlations",
            correlation_id=[1, 2, 3, 4],
            external_id=[10, 10, 10, 11],
            external_kind=[5, 5, 5, 5],
        ),
        "annotations": column(
            "annotations", start_ns=[50, 240], end_ns=[460, 270], external_id=[10, 11], name_id=[0, 1]
        ),
    }
    recording = Recording.from_capture(
        {
            "tables": tables,
            "strings": [call_name(0), f"{call_name(1)}/inner", kernel],
            "counters": {},
            "clock": {
                "cupti_start_ns": 1,
                "cupti_stop_ns": 1000,
                "wall_start_ns": 1,
                "wall_stop_ns": 1000,
                "uncertainty_ns": 1,
            },
            "environment": {},
        }
    )
    first, second = activities_of_calls(recording, 2)
    assert (first.busy_ns, first.span_ns, first.launches, first.kernel_ns) == (250, 350, 3, {kernel: 300})
    assert (second.busy_ns, second.span_ns, second.kernels) == (10, 10, (kernel,))
