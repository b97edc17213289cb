"""The command ``collector compare``: its output and its exit status."""

from __future__ import annotations

import json

import pytest

from collector.cli import main
from collector.cli.compare import EXIT_NOT_ENOUGH_STEPS, EXIT_REGRESSION
from tests.support.captures import CaptureBuilder


@pytest.fixture
def steps_of(tmp_path):
    """Saves steps of one kernel, of about that duration, that end with it; returns their folder."""

    def save(name, count, duration):
        folder = tmp_path / name
        folder.mkdir()
        for number in range(count):
            build = CaptureBuilder()
            length = duration + 10 * number
            build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 2000 + length
            build.kernel("gemm", 1000, length).recording().save(folder / f"step_{number}.gpurec")
        return folder

    return save


def compare(capsys, *arguments):
    status = main(["compare", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.medium
def test_a_proven_regression_is_status_1(steps_of, capsys):
    pytest.importorskip("scipy")
    before, now = steps_of("before", 6, 100_000), steps_of("now", 6, 120_000)
    status, out, err = compare(capsys, before, now)
    assert (status, err) == (EXIT_REGRESSION, "")
    for division in ("by step", "by time", "by op", "by kernel", "by copies"):
        assert f"Means of 6 steps before and 6 now, {division};" in out
    assert "slower" in out
    assert compare(capsys, before, now, "--fail-above", "30%")[0] == 0
    assert compare(capsys, now, before)[0] == 0
    assert compare(capsys, before, before)[0] == 0


def test_too_few_steps_are_status_3_and_show_the_sums(steps_of, capsys):
    before, now = steps_of("before", 1, 100_000), steps_of("now", 1, 120_000)
    status, out, _ = compare(capsys, before, now / "step_0.gpurec", "--by", "kernel", "--json")
    (answer,) = json.loads(out)
    assert status == EXIT_NOT_ENOUGH_STEPS
    assert answer["totals"]["change_ns"] == 20_000
    assert any("steps" in note or "scipy" in note for note in answer["notes"])


@pytest.mark.medium
@pytest.mark.parametrize("cause", ["", "untraced"])
@pytest.mark.parametrize("length", [0, 100_000])
@pytest.mark.parametrize("blank", ["before", "now"])
def test_a_side_of_which_nothing_was_recorded_is_status_3(steps_of, tmp_path, capsys, blank, length, cause):
    """A check that could not look at anything must not pass."""
    pytest.importorskip("scipy")
    sides = {"before": steps_of("recorded", 6, 100_000), "now": tmp_path / "recorded", blank: tmp_path / "blank"}
    sides[blank].mkdir()
    for number in range(6):
        build = CaptureBuilder()
        build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + length
        if cause:
            build.counters[cause] = 1
        build.recording().save(sides[blank] / f"step_{number}.gpurec")
    status, out, _ = compare(capsys, sides["before"], sides["now"], "--by", "step")
    assert status == EXIT_NOT_ENOUGH_STEPS
    assert f"incomplete: {blank}, step 5: nothing was " in out


@pytest.mark.medium
def test_a_pattern_finds_steps_in_the_order_of_their_numbers(steps_of, capsys):
    folder = steps_of("before", 12, 100_000)
    status, out, _ = compare(capsys, f"{folder}/step_*.gpurec", folder, "--by", "step", "--csv")
    assert status in (0, EXIT_NOT_ENOUGH_STEPS)
    assert out.splitlines()[1].startswith("step,102055,102055,0,1.0,")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{}/nothing*.pb", "{}"], "there are no files"),
        (["{}/gone.pb", "{}"], "gone.pb"),
        (["{}", "{}", "--csv"], "--csv prints one answer"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_status_2(steps_of, capsys, arguments, says):
    folder = steps_of("before", 1, 1000)
    status, out, err = compare(capsys, *(each.format(folder) for each in arguments))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_an_empty_folder_is_one_line(tmp_path, capsys):
    status, _, err = compare(capsys, tmp_path, tmp_path)
    assert (status, err.count("\n")) == (2, 1)
    assert "there are no traces in this folder" in err


def test_steps_in_which_nothing_happened_are_too_few(tmp_path, capsys):
    path = tmp_path / "empty.pb"
    path.write_bytes(b"\x0a\x00")
    assert main(["compare", str(path), str(path)]) == EXIT_NOT_ENOUGH_STEPS
    assert "Traceback" not in capsys.readouterr().err
