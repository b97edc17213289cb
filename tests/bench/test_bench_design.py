"""The design of a run: warm-up, stopping, replaced rounds, its account in the report, progress, an idle card."""

from __future__ import annotations

import ast
import io
import itertools
import re
import time
from pathlib import Path

import numpy as np
import pytest

from collector import bench
from collector.bench import experiment
from collector.bench.gpu import CardState
from collector.bench.report_tables import as_text

pytest.importorskip("scipy")

pytestmark = pytest.mark.simulator


@pytest.fixture
def card():
    with bench.SimulatedCard(seed=1) as made:
        yield made


def test_a_start_that_is_slower_is_warmed_up_and_not_measured(card):
    slow, fast, calls = card.kernel("k", 20_000), card.kernel("k", 10_000), itertools.count()

    def warming():
        (slow if next(calls) < 18 else fast)()

    comparison = bench.compare({"warming": warming}, gpu=card, precision=0.01).comparison
    assert comparison.warm_up_rounds > 30
    assert max(comparison.arms["warming"].times_ns) < 12_000


def test_what_stopped_a_run_too_early_is_a_warning(card):
    def warnings(**options):
        comparison = bench.compare({"k": card.kernel("k", 10_000, noise=0.1)}, gpu=card, **options).comparison
        return [warning for warning in comparison.warnings if warning.startswith("stopped by")]

    assert warnings(precision=0.2) == []
    message = "before the precision of 0.01% was reached"
    assert warnings(precision=0.0001, max_rounds=60) == [f"stopped by rounds, {message}"]
    assert warnings(precision=0.0001, max_seconds=0.05) == [f"stopped by time, {message}"]


@pytest.mark.medium
def test_calls_that_take_longer_than_there_is_time_are_measured_once_at_least(card):
    comparison = bench.compare({"slow": lambda: time.sleep(0.03)}, gpu=card, clock="wall", max_seconds=0.02).comparison
    assert comparison.stopped_by == "time"
    assert comparison.rounds >= 1
    assert comparison.arms["slow"].times_ns[0] >= 30e6


@pytest.mark.medium
def test_throttled_rounds_are_replaced_until_there_are_enough(card, monkeypatch):
    asked = itertools.count()
    monkeypatch.setattr(
        card, "state", lambda: CardState(1200, 3200, 90, 700.0, ("HwSlowdown",) if next(asked) % 3 == 0 else ())
    )
    comparison = bench.compare({"k": card.kernel("k", 10_000)}, gpu=card, precision=0.2).comparison
    assert comparison.throttled_rounds > 0
    assert comparison.rounds == len(comparison.arms["k"].times_ns) >= 30
    assert len(comparison.arms["k"].throttled_ns) == comparison.throttled_rounds
    message = f"{comparison.throttled_rounds} rounds were discarded and replaced: throttled by HwSlowdown"
    assert message in comparison.warnings


def test_a_card_that_gives_its_last_answer_again_is_believed_at_the_next_one(card, monkeypatch):
    cool, hot = (CardState(1200, 3200, 90, 700.0, reasons) for reasons in ((), ("HwSlowdown",)))
    asked = itertools.count()  # before the first round, and after each

    def state():
        number = next(asked)
        return cool if 40 <= number < 50 else hot if 50 <= number < 60 else CardState(1200, 3200, 90, 700.0)

    monkeypatch.setattr(card, "state", state)
    comparison = bench.compare({"k": card.kernel("k", 10_000)}, gpu=card, precision=0.2).comparison
    assert comparison.warm_up_rounds == 30
    # From the round after the one that was cool for sure to the one after which it was cool again.
    assert comparison.throttled_rounds == 60 - 40
    assert comparison.rounds >= 30


def test_the_first_trace_holds_the_warm_up_and_what_is_kept_of_a_card_that_is_warm(card, monkeypatch):
    traces = []
    trace = experiment.trace
    monkeypatch.setattr(experiment, "trace", lambda **options: traces.append(options) or trace(**options))
    comparison = bench.compare({"k": card.kernel("k", 10_000)}, gpu=card).comparison
    assert (comparison.warm_up_rounds, comparison.rounds, len(traces)) == (30, 30, 1)


def test_launches_copies_sets_and_waits_of_a_call_are_counted(card):
    kernel = card.kernel("k", 10_000)

    def busy():
        kernel()
        kernel()
        card.gpu.memcpy("HtoD", 4096, stream=7)
        card.gpu.memset(4096, stream=7)
        card.gpu.synchronize(stream=7)

    comparison = bench.compare({"plain": kernel, "busy": busy}, gpu=card, max_rounds=40).comparison
    plain, counted = comparison.arms["plain"], comparison.arms["busy"]
    assert (plain.launches, plain.copies, plain.memsets, plain.synchronizations) == (1, 0, 0, 0)
    assert (counted.launches, counted.copies, counted.memsets, counted.synchronizations) == (2, 1, 1, 1)
    report = bench.Report([comparison], {})
    assert re.search(r" 2 +2 +1$", as_text(report, width=160), re.MULTILINE)


def test_the_report_says_where_it_was_made_and_how(card):
    report = bench.compare({"k": card.kernel("k", 10_000)}, gpu=card, max_rounds=40)
    surroundings = report.environment
    assert surroundings["gpu"] == card.name
    assert surroundings["gpu_uuid"] == card.uuid
    assert surroundings["simulated"] is True
    assert surroundings["driver_version"] == surroundings["cuda_version"] == 13000
    assert surroundings["cupti_path"].endswith(".so")
    assert surroundings["libraries"]["numpy"] == np.__version__
    assert {"git_revision", "collector", "python", "platform", "time", "l2_bytes"} <= set(surroundings)
    seed = report.comparison.design["seed"]
    again = bench.compare({"k": card.kernel("k", 10_000)}, gpu=card, max_rounds=40)
    assert again.comparison.design["seed"] != seed  # drawn anew, and told


def test_progress_is_reported_and_drawn(card, monkeypatch):
    reports = []
    bench.compare(
        {"k": card.kernel("k", 10_000, noise=0.1)}, gpu=card, precision=0.0001, max_rounds=60,
        progress=lambda rounds, width: reports.append((rounds, width)),
    )  # fmt: skip
    assert [rounds for rounds, _ in reports] == [30, 60]
    assert reports[-1][1] < reports[0][1] < 1
    comparison = bench.compare({"k": card.kernel("k", 10_000, noise=0.1)}, gpu=card, precision=1e-4, max_rounds=40)
    assert comparison.comparison.rounds == 40  # not a whole batch more

    from collector.bench.discovery import Benchmark, Instance
    from collector.cli.bench import _progress

    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    with _progress(shown=True, of=2) as tell:
        tell(1, Instance(Benchmark(test_progress_is_reported_and_drawn, (), {}), {"n": 5}), 40, 0.0123)
    assert "[n=5]: 40 rounds, ±1.23%" in terminal.getvalue()
    assert "1/2" in terminal.getvalue()


def test_the_cards_settings_are_never_touched():
    """Of NVML only questions are asked; of the driver nothing that sets a limit or a clock."""
    names = {
        node.attr
        for file in Path(bench.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
    }
    asked = {name for name in names if name.startswith("nvml")}
    assert len(asked) > 5
    assert all(name in ("nvmlInit", "nvmlDeviceGetHandleByUUID") or name.startswith("nvmlDeviceGet") for name in asked)
    assert not any(word in name for name in names for word in ("SetLimit", "LockedClocks", "SetPower"))
