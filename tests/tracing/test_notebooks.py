"""What notebooks show of sessions, steps, recordings and their parts, and the magic that traces a cell."""

from __future__ import annotations

import re

import pytest
from hostile_names import EVIL

import collector
from collector.analysis import kernels
from collector.analysis.idle import CAUSES
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a\0b",
    EVIL,
    "\u202eback",
    "x" * 65_536,
]
TAGS = {"p", "table", "caption", "thead", "tbody", "tr", "th", "td", "style", "pre"}


def shown(value):
    """The HTML of a value, held to what all of it has to be."""
    text = value._repr_html_()
    assert set(re.findall(r"</?([a-z]+)", text)) <= TAGS
    assert text.isprintable()
    assert len(text) < 20_000
    return text


@pytest.fixture(params=HOSTILE, ids=["script", "image", "NUL", "terminal", "bidi", "64 KB"])
def hostile(request, build):
    """A recording whose names are a stranger's."""
    build.annotation(request.param, 0, 5_000, 1).launch(1, 100, external_id=1)
    return build.kernel(request.param, 1_000, 500, correlation_id=1).recording()


def test_names_of_strangers_are_shown_and_not_run(hostile):
    step = Step(RecordingSource(hostile))
    for value in (hostile, step, hostile.kernels, hostile.annotations, hostile.ledger, kernels(hostile)):
        assert "<script" not in shown(value)


def test_a_step_shows_devices_kernels_and_causes(build):
    build.counters["records_dropped"] = 3
    for number in range(3):
        build.launch(number + 1, 300_000 * number).kernel(
            "k", 300_000 * number + 2_000, 100_000, correlation_id=number + 1
        )
    text = shown(Step(RecordingSource(build.recording())))
    for word in ("/gpu:0", "300 µs", "100.0%", "launch latency", "Incomplete: CUPTI dropped 3 records"):
        assert word in text
    assert shown(build.recording()) == text


def test_the_meaning_of_a_cause_is_shown_whole(build):
    """Names are cut in the middle, sentences are not; one name is one."""
    for number, start in enumerate((10_000, 60_000)):
        build.launch(number + 1, 100 + 10 * number).kernel("k" * 200, start, 1000, correlation_id=number + 1)
    text = shown(build.recording())
    assert f">{CAUSES['dependency']}</td>" in text
    assert len(CAUSES["dependency"]) > 80
    assert "k" * 81 not in text
    assert "of 1 name</caption>" in text


def test_figures_stay_on_one_line_and_names_begin_at_the_left(build):
    """Whatever the style sheet of the notebook says of cells."""
    text = shown(kernels(build.kernel("k", 1000, 150_600).recording()))
    assert '<td style="text-align:right;white-space:nowrap">150.6 µs</td>' in text
    assert '<td style="text-align:left">k</td>' in text
    assert re.search('<th scope="col" title="[^"]*" style="text-align:right">count</th>', text)


def test_tables_show_their_first_rows(build):
    for number in range(50):
        build.kernel(f"kernel_{number}", 1000 * number, 500)
    text = shown(build.recording().kernels)
    assert "kernels: 50 rows" in text
    assert "kernel_7" in text
    assert "kernel_8" not in text
    assert "nothing" in shown(build.recording().ledger).lower()


def test_empty_ones_are_shown(build):
    recording = build.recording()
    assert "No GPU did anything" in shown(recording)
    assert "memsets: 0 rows" in shown(recording.memsets)


def test_a_session_without_results_says_so():
    assert shown(collector.trace()) == "<p>this session has not traced a step yet</p>"


@pytest.mark.simulator
def test_an_untraced_step_says_why(monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so.1")
    with pytest.warns(collector.CollectorWarning), collector.trace() as step:
        assert "still being traced" in shown(step)
    assert "Not traced: " in shown(step)


class TestMagic:
    @pytest.fixture
    def shell(self):
        """IPython in this process."""
        testing = pytest.importorskip("IPython.testing.globalipapp", reason="NOTEBOOKS NOT TESTED: they need ipython")
        shell = testing.get_ipython() or testing.start_ipython()
        shell.run_line_magic("load_ext", "collector")
        return shell

    @pytest.mark.medium
    @pytest.mark.simulator
    def test_a_cell_is_traced_and_shown(self, shell, simulated_gpu, tmp_path):
        shell.push({"gpu": simulated_gpu})
        step = shell.run_cell_magic("collector", str(tmp_path / "step.pb"), "made = 6 * 7\ngpu.launch('sgemm')")
        assert shell.user_ns["made"] == 42
        assert step.kernels.names() == ["sgemm"]
        assert "sgemm" in shown(step)
        assert (tmp_path / "step.pb").exists()

    @pytest.mark.medium
    @pytest.mark.simulator
    @pytest.mark.parametrize(
        ("cell", "error"),
        [
            ("gpu.launch('sgemm')\nraise ValueError('boom')", ValueError),
            ("x = = 1", SyntaxError),
            ("import sys; sys.exit(3)", SystemExit),
        ],
    )
    @pytest.mark.filterwarnings("ignore:To exit:UserWarning")
    def test_the_error_of_a_cell_is_the_cells_and_shown_once(self, shell, simulated_gpu, tmp_path, capfd, cell, error):
        shell.push({"gpu": simulated_gpu})
        path = tmp_path / "step.gpurec"
        result = shell.run_cell(f"%%collector {path}\n{cell}")
        assert not result.success
        assert isinstance(result.error_in_exec or result.error_before_exec, error)
        shown = "".join(capfd.readouterr())
        assert shown.count("\nValueError: boom" if error is ValueError else error.__name__) == 1, shown
        assert path.exists()  # what was traced until then is kept, as with a block that raises

    @pytest.mark.medium
    def test_more_than_a_file_is_refused(self, shell):
        with pytest.raises(ValueError, match="one file, and not 2"):
            shell.run_cell_magic("collector", "one.pb two.pb", "1")
