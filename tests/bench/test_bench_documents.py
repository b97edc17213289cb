"""A report on a terminal of any width, as Markdown, CSV and JSON; files that earlier versions wrote."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties import examples

pytest.importorskip("scipy")

from collector import bench
from collector.bench.benchmark_report import Arm, Comparison, Report
from collector.bench.documents import as_csv, as_markdown, changes_as_csv, changes_as_markdown
from collector.bench.plot import page
from collector.bench.report_fields import ARM, COMPARISON
from collector.bench.report_fields import DESIGN as DESIGN_FIELDS
from collector.bench.report_tables import as_text, changes_as_text
from collector.errors import InvalidFileError

OLD_FILE = Path(__file__).parent.parent / "data" / "bench_report_v1.json"
DESIGN = {"clock": "cupti", "cache": "cold", "graph_calls": 0, "precision": 0.005, "seed": 7, "same_within": 0.01}
CARD = {"gpu": "Card", "gpu_uuid": "GPU-1", "simulated": False, "driver_version": 13000}
HOSTILE = "\x1b[31m=1+1|`<b>\n[red]*x*\u202e"

names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
samples = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=40)


def times(mean, seed=0, count=60):
    return (mean * np.random.default_rng(seed).lognormal(0, 0.01, count)).tolist()


def arm(mean, seed=0, **more):
    values = times(mean, seed)
    return Arm(times_ns=values, kernels=["k", "l"], launches=2, kernel_ns={"k": values, "l": values}, **more)


def report(names=("reference", "other"), **more):
    arms = {name: arm(10_000 * (1 + index / 5), index) for index, name in enumerate(names)}
    options = {"name": "saxpy", "parameters": {"n": 256}, "flops": 1e6, "bytes": 1e4, "rounds": 60, **more}
    return Report([Comparison(arms=arms, reference=names[0], design=DESIGN, **options)], CARD)


@pytest.mark.medium
@settings(deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(names, min_size=1, max_size=4, unique=True), st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_lost(arms, width):
    made = report(tuple(arms))
    text = as_text(made, width=width, color=False)
    assert max(map(cells, text.splitlines())) <= width
    assert "…" not in text or any("…" in name for name in arms)
    shown = text.split()
    for result in made.results[0].values():
        if result.ratio is not None:
            interval = result.ratio.interval
            wanted = [f"{interval.estimate:.4f}", f"{interval.low:.4f}..{interval.high:.4f}"]
            assert set(wanted) <= set(shown)
            assert f"{result.mean_ratio.interval.estimate:.4f}" in shown


def cells(line):
    from rich.cells import cell_len

    return cell_len(line)


@pytest.mark.medium
def test_the_terminals_width_is_used(monkeypatch):
    made = report()
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(cells, str(made).splitlines())) <= 60
    monkeypatch.setenv("COLUMNS", "160")
    assert max(map(cells, str(made).splitlines())) > 100
    wide = page(made)
    monkeypatch.setenv("COLUMNS", "60")
    assert page(made) == wide


def test_folded_tables_name_the_row_in_every_part():
    made = report(("first", "second"))
    lines = [line.strip() for line in as_text(made, width=60, color=False).splitlines()]
    assert sum(line.startswith("arm ") for line in lines) == sum(line.startswith("second ") for line in lines) - 1


def test_names_are_shown_and_never_obeyed(tmp_path):
    failures, warnings = {HOSTILE: f"arm '{HOSTILE}': bad"}, [HOSTILE]
    made = report((HOSTILE, "other"), name=HOSTILE, parameters={HOSTILE: HOSTILE}, failures=failures, warnings=warnings)
    found, notes = bench.regressions(made, made)
    documents = [
        as_text(made, color=False), changes_as_text(found, notes, color=False), as_markdown(made), as_csv(made),
        changes_as_markdown(found, notes), changes_as_csv(found),
    ]  # fmt: skip
    for text in documents:
        assert all(each.isprintable() or each == "\n" for each in text)
    assert "[red]*x*" in as_text(made, color=False, width=200)
    assert "<b>" not in re.sub(r"\\<b\\>", "", as_markdown(made))
    rows = list(csv.DictReader(io.StringIO(as_csv(report(("=cmd()", "@x", "-y"))))))
    assert [row["arm"] for row in rows] == ["'=cmd()", "'@x", "'-y"]


def test_every_text_of_a_plot_is_escaped():
    made = report((HOSTILE, "other"), name=HOSTILE, unit=HOSTILE, parameters={HOSTILE: HOSTILE}, warnings=[HOSTILE])
    assert "<b>" not in page(made)
    assert "&lt;b&gt;" in page(made)


def over(axis, values):
    """A benchmark over an axis; a value of None: of no axis."""
    each = [report(parameters={} if value is None else {axis: value}).comparison for value in values]
    return Report(each, CARD)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("values", "drawn", "left_out"),
    [
        ([0, 4, 8], 4, "0"),
        ([4, 8, "all", -1], 4, "all, -1"),
        ([4, 8, True, ""], 4, "True, "),
        ([None, 4, 8], 4, ""),
        ([0, 4], 0, ""),
        ([4, 8, 16], 6, ""),
    ],
    ids=["zero", "text", "truth", "elsewhere", "one", "all"],
)
def test_a_plot_over_an_axis_names_the_values_that_it_cannot_show(values, drawn, left_out):
    text = page(over("n", values))
    assert text.count('r="4"') == drawn
    assert ("without n = " in text) == bool(left_out)
    assert f"without n = {left_out}: " in text or not left_out


@pytest.mark.medium
def test_values_of_an_axis_have_their_digits_and_do_not_overlap():
    of_axis = re.compile(r'text-anchor="middle">([\d.e+]+)</text>')
    few = page(over("n", [65536, 1048576, 16777216, 100.5]))
    assert of_axis.findall(few) == ["100.5", "65536", "1048576", "16777216"]
    assert of_axis.findall(page(over("n", [1, 1e30]))) == ["1", "1e+30"]
    many = page(over("n", [2**power for power in range(20, 50)]))
    shown = re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle">(\d+)</text>', many)
    assert len(shown) > 3
    for (x, text), (next_x, next_text) in pairwise(shown):
        assert float(next_x) - float(x) > 3.5 * (len(text) + len(next_text))


@settings(deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(names, min_size=1, max_size=4, unique=True))
def test_every_row_of_a_markdown_table_has_as_many_cells(arms):
    lines = as_markdown(report(tuple(arms))).splitlines()
    counts = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines if line.startswith("|")]
    assert len(set(counts[: 2 + len(arms)])) == 1
    assert len(counts) == 2 + len(arms) + 2 + 2 * len(arms)


def test_csv_has_what_the_report_says():
    made = report(parameters={"n": 256, "arm": "x"}, failures={"c": "arm 'c': bad"})
    rows = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert [row["arm"] for row in rows] == ["reference", "other", "c"]
    assert rows[2]["not_measured"] == "arm 'c': bad"
    assert (rows[1]["n"], rows[1]["axis arm"]) == ("256", "x")
    result = made.results[0]["other"]
    for column, value in {
        "estimate": result.typical.estimate, "low": result.typical.low, "high": result.typical.high,
        "mean": result.spread.mean, "p5": result.spread.p5, "p95": result.spread.p95,
        "variation": result.spread.variation, "ratio": result.ratio.interval.estimate,
        "ratio_low": result.ratio.interval.low, "mean_ratio_high": result.mean_ratio.interval.high,
    }.items():  # fmt: skip
        assert float(rows[1][column]) == value
    assert rows[1]["verdict"] == made.verdicts[0]["other"] == "slower"


@settings(deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(samples, st.data())
def test_the_file_holds_what_follows_from_the_samples_and_only_numbers(values, data):
    import tempfile

    others = data.draw(st.lists(st.floats(1e-3, 1e12), min_size=len(values), max_size=len(values)))
    arms = {"a": Arm(times_ns=values), "b": Arm(times_ns=others)}
    made = Report([Comparison(arms=arms, reference="a", design=DESIGN)], CARD)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        made.save(path)
        (stored,) = json.loads(path.read_text(), parse_constant=pytest.fail)["comparisons"]
        loaded = Report.load(path)
    assert loaded.results == made.results
    found = stored["results"]["b"]
    assert found == made.results[0]["b"].to_json()
    assert found["verdict"] == made.verdicts[0]["b"]
    assert found["estimate"] == float(np.median(others))
    assert (found["low"] is None) == (len(values) < 6)
    interval = made.comparison.ratios["b"].interval
    assert found["ratio"]["estimate"] == interval.estimate
    assert (found["ratio"]["low"] is None) == (not math.isfinite(interval.low))
    assert stored["results"]["a"]["ratio"] is None


def test_what_a_stored_file_says_is_not_believed(tmp_path):
    path = tmp_path / "r.json"
    report().save(path)
    content = json.loads(path.read_text())
    content["comparisons"][0]["results"]["other"]["verdict"] = "faster"
    path.write_text(json.dumps(content))
    assert Report.load(path).verdicts[0]["other"] == "slower"


def test_a_report_of_an_earlier_version_is_read_shown_and_compared(tmp_path):
    old = Report.load(OLD_FILE)
    assert old.verdicts == [{"two": "slower"}]
    result = old.results[0]["two"]
    assert result.ratio.interval.estimate == pytest.approx(1.1, rel=0.01)
    assert result.mean_ratio.interval.low < 1.1 < result.mean_ratio.interval.high
    assert "scale[n=1]" in str(old)
    old.save(tmp_path / "again.json")
    again = Report.load(tmp_path / "again.json")
    assert again.results == old.results
    found, _ = bench.regressions(again, old)
    assert [each.verdict for each in found] == ["no change seen"] * 2
    printed = json.dumps(dict(again.environment))
    assert "alice" not in printed
    assert (again.environment["program"], again.environment["platform"]) == ("bench_scale.py", "Linux 6.1.0")


@pytest.mark.medium
@pytest.mark.parametrize("wrong", [None, True, -1, 10**400, 1e308, "x", [], [[1]], {"a": []}], ids=str)
def test_a_field_that_holds_something_else_is_refused_or_does_no_harm(wrong, tmp_path):
    text = OLD_FILE.read_text()
    path = tmp_path / "r.json"
    refused = 0
    checked = {"comparison": COMPARISON, "arm": ARM, "design": DESIGN_FIELDS, "file": ["environment"]}
    checked["ceilings"] = ["bytes_per_s", "flop_per_s"]
    for place, names in checked.items():
        for name in names:
            content = json.loads(text)
            (comparison,) = content["comparisons"]
            places = {"file": content, "comparison": comparison, "arm": comparison["arms"]["two"]}
            places |= {"design": comparison["design"], "ceilings": comparison["ceilings"]}
            places[place][name] = wrong
            path.write_text(json.dumps(content))
            try:
                read = Report.load(path)
            except InvalidFileError as error:
                assert "is a damaged benchmark report" in str(error)  # noqa: PT017 - others are accepted
                refused += 1
                continue
            assert str(read)
            assert as_markdown(read)
            assert as_csv(read)
            read.save(path)
    assert refused > 20


def test_every_field_is_checked_when_it_is_read():
    assert set(ARM) == set(Arm.__dataclass_fields__)
    assert {*COMPARISON, "arms"} == set(Comparison.__dataclass_fields__)


def test_one_sample_alone_is_not_held_against_several():
    many = report()
    arms = {name: Arm(each.times_ns[:1]) for name, each in many.comparison.arms.items()}
    single = Report([Comparison(arms, "reference", name="saxpy", parameters={"n": 256}, design=DESIGN)], CARD)
    for pair in ((many, single), (single, many)):
        with pytest.raises(bench.BenchmarkError, match="other: one sample cannot be compared with several"):
            bench.regressions(*pair)
    found, _ = bench.regressions(single, single)
    assert [each.verdict for each in found] == ["no change seen"] * 2


def test_a_file_without_the_fields_of_later_versions_is_read(tmp_path):
    content = json.loads(OLD_FILE.read_text())
    (comparison,) = content["comparisons"]
    for later in ("unit", "run_rounds", "event_overhead_ns", "probe_cold_ns", "probe_hot_ns", "ceilings"):
        comparison.pop(later)
    for each in comparison["arms"].values():
        for later in ("facts", "synchronizations", "span_ns"):
            each.pop(later)
    path = tmp_path / "older.json"
    path.write_text(json.dumps(content))
    assert Report.load(path).verdicts == [{"two": "slower"}]
