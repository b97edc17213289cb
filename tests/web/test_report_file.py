"""A report holds the answers digit for digit, in one file that loads nothing and says nothing of its writer."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import platform
import re
import shlex
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hostile_names import EVIL
from report_pages import RECORDED_AND_LARGE, islands, page_of, slices

import collector
from collector.analysis.compare import BY
from collector.analysis.idle import CAUSES, idle
from collector.analysis.questions import QUESTIONS
from collector.cli import main
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.profiler import step_reader
from collector.profiler.advice.step_advice import advise
from collector.profiler.step_reader import read_step
from collector.stepstats.from_recording import serialized
from collector.text.quantities import time_text
from collector.web.given_rows import MOST_ROWS
from collector.web.report_data import findings_of
from collector.web.report_file import asset, write_report
from collector.web.report_lanes import BINS, FULL, lanes_of
from collector.web.single_answers import AskedAnswer, single_answer

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a\0b", EVIL, "=1+1", "x" * 65_536]


@pytest.fixture
def small(build):
    """A step with two streams, a copy, calls and annotations."""
    for number in range(5):
        build.call("cudaLaunchKernel_v7000", 10 + 100 * number, 20, correlation_id=number + 1)
        build.kernel(f"kernel_{number % 2}", 50 + 100 * number, 60, stream_id=7 + number % 2, correlation_id=number + 1)
    build.memcpy(700, 100, stream_id=8)
    return build.recording()


def write(path, *recordings, **options):
    steps = [(f"step {number}", Step(RecordingSource(each))) for number, each in enumerate(recordings)]
    return write_report(path, steps, **options)


def expected(answer, column):
    """Values of an answer as a report has them."""
    return [
        None if isinstance(value, float) and math.isnan(value) else value
        for value in answer[column].tolist()[:MOST_ROWS]
    ]


def numbers(values, unit):
    return [int(each) if isinstance(each, str) and unit != "text" else each for each in values]


@pytest.mark.medium
@pytest.mark.parametrize("name", RECORDED_AND_LARGE)
def test_every_figure_is_that_of_an_answer(shared, tmp_path, name):
    step = collector.load(shared / "data" / "gpu_traces" / name)
    step.save(tmp_path / "step.html")
    [found] = page_of(tmp_path / "step.html")["steps"]
    assert {"devices", "idle", "kernels/name", "kernels/shape", "ops", "launches"} <= set(found["answers"])
    for key, data in found["answers"].items():
        question, _, by = key.partition("/")
        answer = QUESTIONS[question].answer(step, by)
        assert [each["name"] for each in data["columns"]] == [each.name for each in answer.columns]
        assert data["rows"] == len(answer)
        for column, values in zip(answer.columns, data["values"], strict=True):
            assert numbers(values, column.unit) == expected(answer, column.name), (key, column.name)
        assert {name: int(value) if isinstance(value, str) else value for name, value in data["totals"].items()} == (
            answer.totals
        )


@pytest.mark.medium
@pytest.mark.parametrize("name", RECORDED_AND_LARGE)
def test_the_command_beside_a_table_prints_its_figures(shared, tmp_path, name, monkeypatch, capsys):
    """Row for row, as far as the page holds them: the page and the terminal have one number for one question."""
    monkeypatch.chdir(tmp_path)
    # Stored as columns, because each command reads the file: the tool's format is read once.
    collector.load(shared / "data" / "gpu_traces" / name).save("step.gpurec")
    collector.load("step.gpurec").save("step.html")
    [found] = page_of(tmp_path / "step.html")["steps"]
    for key, data in found["answers"].items():
        capsys.readouterr()
        assert main([*shlex.split(data["cli"])[1:], "--json"]) == 0
        [printed] = json.loads(capsys.readouterr().out)
        shown = [
            numbers(values, column["unit"]) for column, values in zip(data["columns"], data["values"], strict=True)
        ]
        assert printed["columns"] == data["columns"], key
        assert printed["rows"][:MOST_ROWS] == [list(row) for row in zip(*shown, strict=True)], key
        assert (len(printed["rows"]), printed["totals"]) == (data["rows"], data["totals"]), key


@pytest.mark.medium
def test_what_is_beside_a_table_gives_the_same(small, tmp_path):
    from collector import analysis

    write(tmp_path / "step.html", small)
    [found] = page_of(tmp_path / "step.html")["steps"]
    for data in found["answers"].values():
        answer = eval(data["python"], {"analysis": analysis, "step": small})
        assert [expected(answer, column.name) for column in answer.columns] == [
            numbers(values, column.unit) for column, values in zip(answer.columns, data["values"], strict=True)
        ]


def test_the_verdict_words_the_largest_cause_as_its_definition_does(build, tmp_path):
    for number in range(3):
        build.call("cudaLaunchKernel_v7000", 300_000 * number, 1_000, correlation_id=number + 1)
        build.kernel("k", 300_000 * number + 2_000, 100_000, correlation_id=number + 1)
    recording = build.recording()
    write(tmp_path / "step.html", recording)
    [found] = page_of(tmp_path / "step.html")["steps"]
    totals = idle(recording).totals
    cause = max(CAUSES, key=lambda each: totals[f"{each}_ns"])
    assert found["verdict"].lower().endswith(f" of {time_text(totals['idle_ns'])}: {CAUSES[cause]}".lower())


def test_every_slice_is_in_it(small, tmp_path):
    write(tmp_path / "step.html", small)
    [found] = page_of(tmp_path / "step.html")["steps"]
    drawn = [
        (found["lanes"][lane]["name"], start, length, found["names"][name])
        for lane, start, length, name in slices(tmp_path / "step.html")
    ]
    assert [each for each in drawn if each[0].startswith("GPU")] == [
        ("GPU 0 stream 7", 50, 60, "kernel_0"),
        ("GPU 0 stream 7", 250, 60, "kernel_0"),
        ("GPU 0 stream 7", 450, 60, "kernel_0"),
        ("GPU 0 stream 8", 150, 60, "kernel_1"),
        ("GPU 0 stream 8", 350, 60, "kernel_1"),
        ("GPU 0 stream 8", 700, 100, "memcpy HtoD"),
    ]
    assert sorted(each[1] for each in drawn if "calls" in each[0]) == [10, 110, 210, 310, 410]
    assert found["slices"] == len(drawn)


def test_lanes_stand_in_the_order_of_their_numbers(build):
    """As the tracks of a timeline do: thread 9 before thread 10, the tenth depth of annotations after the second."""
    for thread in (10, 9):
        build.call("cudaLaunchKernel_v7000", 10, 20, correlation_id=thread, thread_id=thread)
        build.kernel("k", 100 * thread, 50, stream_id=thread, correlation_id=thread)
        for depth in range(11):
            build.raw("annotations", thread_id=thread, start_ns=build.clock["cupti_start_ns"] + depth, depth=depth)
    assert [lane.name for lane in lanes_of(build.recording()).lanes] == [
        "GPU 0",
        "GPU 0 stream 9",
        "GPU 0 stream 10",
        *[
            f"thread {thread} {name}"
            for thread in (9, 10)
            for name in ("CUDA calls", "annotations", *(f"annotations {depth}" for depth in range(2, 12)))
        ],
    ]


def test_bins_are_the_busy_share_of_equal_parts(build):
    build.kernel("half", 0, 500_000)
    build.kernel("short", 600_000, 1)
    lanes = lanes_of(build.recording())
    device = np.frombuffer(lanes.bins(), np.uint8)[:BINS]
    assert device[: BINS // 2].tolist() == [FULL] * (BINS // 2)
    assert np.flatnonzero(device[BINS // 2 :]).tolist() == [int(0.6 * BINS) - BINS // 2]
    assert device[int(0.6 * BINS)] == 1  # anything that ran is seen


@pytest.mark.medium
def test_each_row_has_the_time_of_the_longest_that_it_counts(build, tmp_path):
    for number, (stream, grid, start, length) in enumerate(((7, 64, 10_000, 9000), (9, 1, 500_000, 80), (9, 1, 9, 80))):
        build.call("cudaLaunchKernel_v7000", 100 + 50 * number, 20 + number, correlation_id=number + 1)
        build.annotation(f"op_{stream}", 50 + 50 * number, 80, 70 + number, number + 1)
        build.kernel("gemm", start, length, stream_id=stream, grid_x=grid, correlation_id=number + 1)
    build.memcpy(200_000, 50_000, src_kind=2).memcpy(700_000, 1000, src_kind=1).memset(800_000, 10)
    path, step = tmp_path / "step.html", Step(RecordingSource(build.recording()))
    write_report(path, [("step.pb", step)])
    answers = page_of(path)["steps"][0]["answers"]
    for key in ("kernels/stream", "kernels/shape", "kernels/op"):
        assert answers[key]["longest"] == [[10_000, 9], [19_000, 89]], key
    assert answers["kernels/name"]["longest"] == [[10_000], [19_000]]
    assert answers["copies"]["longest"] == [[200_000, 700_000, 800_000], [250_000, 701_000, 800_010]]
    assert answers["calls"]["longest"] == answers["launches"]["longest"] == [[200], [222]]
    assert answers["streams"]["longest"] == []
    asked = AskedAnswer("kernels/stream", (400_000, 600_000))
    assert single_answer(step, "step.pb", asked)["longest"] == [[500_000], [500_080]]


@pytest.mark.parametrize("apart", [2**31, 2**48, 2**60])
def test_slices_that_are_far_apart_are_where_they_were(build, tmp_path, apart):
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + apart + 1000
    build.kernel("first", 0, 100).kernel("last", apart, 500).kernel("long", 0, apart, stream_id=9)
    step = Step(RecordingSource(build.recording()))
    write_report(tmp_path / "step.html", [("step.pb", step)])
    assert [each[1:3] for each in slices(tmp_path / "step.html")] == [(0, 100), (apart, 500), (0, apart)]
    bins = np.frombuffer(islands(tmp_path / "step.html")["bins-0"], np.uint8).reshape(3, BINS)
    assert bins[1].nonzero()[0].tolist() == [0, BINS - 1]
    assert (bins[2] == FULL).all()


@pytest.mark.medium
def test_what_does_not_fit_is_the_shortest_and_said(build, tmp_path):
    lengths = np.random.default_rng(1).integers(1, 90, 20_000).tolist()
    for number, length in enumerate(lengths):
        build.kernel(f"kernel_{number % 50}", 40 * number, length)
    whole = write(tmp_path / "whole.html", build.recording(), max_size=10**9)
    without_rows = write(tmp_path / "cut.html", build.recording(), max_size=whole.num_bytes - 1)
    assert without_rows.slices == whole.slices
    cut = write(tmp_path / "cut.html", build.recording(), max_size=without_rows.num_bytes - 8_000)
    assert whole.slices == whole.all_slices == cut.all_slices > cut.slices
    assert (tmp_path / "cut.html").stat().st_size == cut.num_bytes <= without_rows.num_bytes - 8_000
    kept = [each[2] for each in slices(tmp_path / "cut.html")]
    assert len(kept) == cut.slices == page_of(tmp_path / "cut.html")["steps"][0]["slices"]
    assert sorted(kept) == sorted(lengths)[-len(kept) :]
    assert islands(tmp_path / "cut.html")["bins-0"] == islands(tmp_path / "whole.html")["bins-0"]


def test_the_same_step_gives_the_same_bytes(small, tmp_path):
    write(tmp_path / "first.html", small)
    write(tmp_path / "second.html", small)
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()


@pytest.mark.medium
def test_several_steps_have_answers_together(build, tmp_path):
    for number in range(4):
        build.kernel("k", 1000 * number, 500)
    write(tmp_path / "run.html", *[build.recording()] * 4)
    page = page_of(tmp_path / "run.html")
    assert [each["name"] for each in page["steps"]] == ["step 0", "step 1", "step 2", "step 3"]
    assert page["answers"]["steps"]["rows"] == 4


def compared(page, before, now):
    """Hold the comparison of a page against that of the analysis."""
    from collector import analysis

    assert set(page["compare"]["answers"]) == set(BY)
    for by, data in page["compare"]["answers"].items():
        answer = analysis.compare(before, now, by=by)
        assert [each["name"] for each in data["columns"]] == [each.name for each in answer.columns]
        for column, values in zip(answer.columns, data["values"], strict=True):
            assert numbers(values, column.unit) == expected(answer, column.name), (by, column.name)
        assert (data["totals"], data["notes"]) == (answer.totals, list(answer.notes))


@pytest.mark.medium
def test_steps_are_compared_with_those_before(build, tmp_path):
    recordings = []
    for number in range(10):
        step = type(build)()
        for place in range(5):
            step.kernel("k", 1000 * place, 500 + number + 100 * (number >= 5))
        recordings.append(step.recording())
    steps = [(f"step {number}", Step(RecordingSource(each))) for number, each in enumerate(recordings)]
    write_report(tmp_path / "change.html", steps[5:], before=steps[:5])
    page = page_of(tmp_path / "change.html")
    assert page["title"] == "step 0, step 1, step 2, … → step 5, step 6, step 7, …"
    assert page["compare"]["before"] == {"name": "step 0, step 1, step 2, …", "steps": [0, 1, 2, 3, 4]}
    assert page["compare"]["now"]["steps"] == [5, 6, 7, 8, 9]
    assert page["first"] == 5
    assert page["compare"]["answers"]["kernel"]["cli"] == "collector compare BEFORE NOW --by kernel"
    compared(page, recordings[:5], recordings[5:])


@pytest.mark.medium
def test_two_files_are_compared_unless_they_are_of_two_ranks(small, build, tmp_path):
    write(tmp_path / "two.html", small, small)
    page = page_of(tmp_path / "two.html")
    compared(page, small, small)
    assert page["compare"]["answers"]["op"]["cli"] == "collector compare 'step 0' 'step 1' --by op"
    assert page["first"] == 0
    write(tmp_path / "three.html", small, small, small)
    assert page_of(tmp_path / "three.html")["compare"] is None
    recordings = []
    for rank in range(2):
        of_rank = type(build)()
        for number in range(50):
            start = 20_000 * number + 7 * number**2 + 100 * rank
            of_rank.kernel("ncclDevKernel_AllReduce", start, 500 - 100 * rank)
        recordings.append(of_rank.recording())
    write(tmp_path / "ranks.html", *recordings)
    assert "ranks/rank" in page_of(tmp_path / "ranks.html")["answers"]
    assert page_of(tmp_path / "ranks.html")["compare"] is None


@pytest.mark.parametrize(
    ("name", "argument"),
    [("a b.pb", "'a b.pb'"), ("$(reboot).pb", "'$(reboot).pb'"), ("-o.pb", "./-o.pb"), ("plain.pb", "plain.pb")],
)
def test_a_file_is_one_argument_of_the_command_beside_a_table(small, tmp_path, name, argument):
    write_report(tmp_path / "step.html", [(name, Step(RecordingSource(small)))])
    [found] = page_of(tmp_path / "step.html")["steps"]
    assert found["answers"]["ops"]["cli"] == f"collector stats {argument} --question ops"


def test_the_policy_lets_only_its_own_script_and_style_run(small, tmp_path):
    write(tmp_path / "step.html", small)
    text = (tmp_path / "step.html").read_text("utf-8")
    policy = re.search(r'Content-Security-Policy content="([^"]+)"', text)[1]
    rules = dict(each.strip().partition(" ")[::2] for each in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@pytest.mark.parametrize("name", HOSTILE, ids=["script", "image", "NUL", "terminal", "formula", "64 KB"])
def test_names_of_strangers_are_data(build, tmp_path, name):
    build.kernel(name, 10)
    write(tmp_path / "step.html", build.recording(), title=name)
    text = (tmp_path / "step.html").read_text("utf-8")
    assert text.count("<script") == len(islands(tmp_path / "step.html")) + 1 + asset("app.js").count("<script")
    assert "onerror=alert" not in re.sub(r"&[a-z]+;", "", text.replace("&lt;img src=x onerror=alert(1)&gt;", ""))


@pytest.mark.medium
@pytest.mark.simulator
def test_it_says_nothing_of_machine_or_person(tmp_path, monkeypatch, simulated_gpu):
    monkeypatch.setenv("COLLECTOR_SECRET", "s3cr3t-value")
    with collector.trace(tmp_path / "step.html"):
        simulated_gpu.launch("kernel")
    everything = b"".join([(tmp_path / "step.html").read_bytes(), *islands(tmp_path / "step.html").values()]).decode(
        errors="replace"
    )
    for word in (socket.gethostname(), platform.node(), str(tmp_path), str(Path.home()), "s3cr3t-value"):
        assert len(word) < 4 or word not in everything


def test_why_nothing_was_traced_is_said_without_folders(build, tmp_path):
    step = Step(RecordingSource(build.recording()))
    step.unavailable = f"cannot load {Path.home()}/lib/libcupti.so.13 (/customer/a b/libcupti.so.13: no such file)"
    write_report(tmp_path / "step.html", [("step", step)])
    [found] = page_of(tmp_path / "step.html")["steps"]
    assert found["unavailable"] == "cannot load libcupti.so.13 (libcupti.so.13: no such file)"


def test_a_report_of_an_untraced_session_has_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", str(tmp_path / "customer" / "libcuda.so"))
    with pytest.warns(collector.CollectorWarning), collector.trace() as step:
        pass
    step.report(tmp_path / "step.html")
    [found] = page_of(tmp_path / "step.html")["steps"]
    assert "libcuda.so" in found["unavailable"]
    assert "customer" not in islands(tmp_path / "step.html")["data"].decode()


def test_findings_are_those_of_the_advice_with_its_losses(build, tmp_path):
    for number in range(5):
        build.launch(number + 1, 1000 * number)
        build.kernel("k", 1000 * number + 600, 100, correlation_id=number + 1)
    build.counters["records_dropped"] = 3
    recording = build.recording()
    write(tmp_path / "step.html", recording)
    [found] = page_of(tmp_path / "step.html")["steps"]
    assert [each["line"] for each in found["findings"]] == [each.line for each in advise(read_step(recording))]
    assert any("dropped" in each["line"] for each in found["findings"])


def test_findings_of_a_rank_name_its_devices(build, tmp_path, monkeypatch):
    """Findings of a ``.pb`` file follow from its columns, and are those of its StepStats."""
    build.counters["records_dropped"] = 3
    for number in range(40):
        build.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1000 * number + 5, 900)
    path = tmp_path / "rank3.pb"
    path.write_bytes(serialized(build.recording(), "/job:worker/replica:0/task:3"))
    wanted = [each.line for each in advise(read_step(path))]
    assert any("/job:worker/replica:0/task:3/gpu:0" in line for line in wanted)
    monkeypatch.setattr(step_reader, "read_step", lambda _: pytest.fail("the StepStats were read"))
    assert [each["line"] for each in findings_of(collector.load(path))] == wanted


def test_a_report_cannot_be_read_back_and_says_so(small, tmp_path):
    write(tmp_path / "step.html", small)
    with pytest.raises(collector.InvalidFileError, match="this is a report, which cannot be read back"):
        collector.load(tmp_path / "step.html")


@pytest.mark.medium
def test_a_step_writes_its_report_and_compares_itself(small, tmp_path):
    step, other = (Step(RecordingSource(small)) for _ in range(2))
    step.report(tmp_path / "step.html", title="one")
    page = page_of(tmp_path / "step.html")
    assert (page["title"], page["compare"], [each["name"] for each in page["steps"]]) == ("one", None, ["step"])
    step.report(str(tmp_path / "change.html"), before=[other, other])
    page = page_of(tmp_path / "change.html")
    assert (page["compare"]["before"]["steps"], page["compare"]["now"]["steps"]) == ([0, 1], [2])
    step.report(tmp_path / "same.html", before=other)
    assert page_of(tmp_path / "same.html")["compare"]["before"]["steps"] == [0]
    with pytest.raises(collector.UnknownFormatError, match=r"a report is a page\. Name it \.html"):
        step.report(tmp_path / "step.pb")
    with pytest.raises(collector.OutputError):
        step.report(tmp_path / "no" / "folder" / "step.html")


def test_an_untraced_step_has_a_page(build, tmp_path):
    write(tmp_path / "empty.html", build.recording())
    [found] = page_of(tmp_path / "empty.html")["steps"]
    assert found["verdict"] == "No GPU did anything in this step."


class TestCommand:
    @pytest.fixture(autouse=True)
    def captured(self, capsys):
        self.capsys = capsys

    def run(self, *arguments):
        """In this process, which takes less time than a start of Python."""
        try:
            status = main(["report", *map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        return subprocess.CompletedProcess(arguments, status, *self.capsys.readouterr())

    def assert_silent(self, done, written):
        """A busy machine may take over a second to write, which is worth a line."""
        assert (done.returncode, done.stdout) == (0, "")
        assert [line for line in done.stderr.splitlines() if not line.startswith(f"collector: {written}: ")] == []

    @pytest.mark.medium
    def test_several_files(self, small, tmp_path):
        for number in range(2):
            small.save(tmp_path / f"step_{number}.gpurec")
        files = [tmp_path / "step_0.gpurec", tmp_path / "step_1.gpurec"]
        command = [sys.executable, "-m", "collector", "report", *files, "-o", tmp_path / "run.html"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assert_silent(done, tmp_path / "run.html")
        page = page_of(tmp_path / "run.html")
        assert page["title"] == "step_0.gpurec, step_1.gpurec"

    @pytest.mark.medium
    def test_what_files_are_compared_with(self, small, tmp_path):
        for number in range(2):
            small.save(tmp_path / f"step_{number}.gpurec")
        done = self.run(
            tmp_path / "step_1.gpurec", "--before", tmp_path / "step_0.gpurec", "-o", tmp_path / "change.html"
        )
        self.assert_silent(done, tmp_path / "change.html")
        page = page_of(tmp_path / "change.html")
        assert (page["compare"]["before"]["name"], page["compare"]["now"]["name"]) == ("step_0.gpurec", "step_1.gpurec")

    @pytest.mark.parametrize("damage", ["empty", "foreign", "zeros", "missing", "folder"])
    def test_a_file_that_is_no_step_is_one_line(self, tmp_path, damage):
        path = tmp_path / "step.gpurec"
        content = {"empty": b"", "foreign": b"hello\n", "zeros": bytes(5000)}
        if damage in content:
            path.write_bytes(content[damage])
        elif damage == "folder":
            path.mkdir()
        done = self.run(path, "-o", tmp_path / "step.html")
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert "step.gpurec" in done.stderr
        assert not (tmp_path / "step.html").exists()

    @pytest.mark.medium
    def test_a_trace_that_is_still_written_says_in_its_page_what_is_missing(self, tmp_path):
        events = [
            {"ph": "X", "cat": "kernel", "name": f"k{number}", "ts": 10 * number, "dur": 5, "pid": 0, "tid": 7,
             "args": {"device": 0, "stream": 7, "correlation": number + 1}}
            for number in range(50)
        ]  # fmt: skip
        text = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events})
        (tmp_path / "step.json").write_text(text[: len(text) // 2])
        done = self.run(tmp_path / "step.json", "-o", tmp_path / "step.html")
        assert (done.returncode, done.stdout) == (0, "")
        [found] = page_of(tmp_path / "step.html")["steps"]
        assert "not all of it could be read" in found["warning"]
        assert str(tmp_path) not in found["warning"]
        assert found["losses"] == collector.load(tmp_path / "step.json").ledger.losses()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["-o", "step.txt"], "a report is a page. name it .html"),
            (["-o", "no/folder/step.html"], "no/folder"),
            (["-o", "step.html", "--max-size", "8"], "'8' is too small: the page without any data takes 400 kB"),
            (["-o", "step.html", "--max-size", "8kB"], "'8kB' is too small: the page without any data takes 400 kB"),
        ],
    )
    def test_what_cannot_be_done_is_one_line(self, small, tmp_path, monkeypatch, arguments, message):
        monkeypatch.chdir(tmp_path)
        small.save("step.gpurec")
        done = self.run("step.gpurec", *arguments)
        assert done.returncode == 2
        assert message.lower() in done.stderr.lower()
        assert "Traceback" not in done.stderr
        assert not list(tmp_path.glob("*.html"))


def test_checksums_of_the_page_are_true():
    for line in asset("SHA256SUMS").splitlines():
        digest, name = line.split()
        assert hashlib.sha256(asset(name).encode()).hexdigest() == digest, name


@pytest.mark.medium
def test_a_figure_that_is_not_finite_is_unknown(small, tmp_path):
    """The first step stands apart; the others are equal, so that nothing measures its distance from them."""
    longer = replace(small.clock, cupti_stop_ns=small.clock.cupti_stop_ns + 1_000)
    first = type(small)(small.parts, small.strings, longer, small.ledger, small.counters, small.environment)
    write(tmp_path / "steps.html", first, *[small] * 3)
    answer = page_of(tmp_path / "steps.html")["answers"]["steps"]
    z = answer["values"][[column["name"] for column in answer["columns"]].index("z")]
    assert z == [None, 0, 0, 0]


@pytest.mark.parametrize("size", ["2MB", None, True])
def test_a_size_that_is_no_number_is_refused(size, build, tmp_path):
    build.kernel("k", 1000).recording().save(tmp_path / "step.gpurec")
    step = collector.load(tmp_path / "step.gpurec")
    with pytest.raises(TypeError, match="max_size takes a number of bytes, not"):
        step.report(tmp_path / "page.html", max_size=size)


@pytest.mark.medium
def test_compared_files_of_one_name_have_their_folders(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("main", "change"):
        Path(folder).mkdir()
        build.recording().save(Path(folder, "step.pb"))
    assert main(["report", "change/step.pb", "--before", "main/step.pb", "-o", "of_command.html"]) == 0
    collector.load("change/step.pb").report("of_step.html", before=collector.load("main/step.pb"))
    for page in (page_of(tmp_path / "of_command.html"), page_of(tmp_path / "of_step.html")):
        assert [step["name"] for step in page["steps"]] == ["main/step.pb", "change/step.pb"]
        assert page["title"] == "main/step.pb → change/step.pb"
        assert page["compare"]["answers"]["op"]["cli"] == "collector compare main/step.pb change/step.pb --by op"


@pytest.mark.parametrize("before", ["step.pb", ["step.pb"], [None]])
def test_steps_before_are_steps(build, tmp_path, before):
    with pytest.raises(TypeError, match=r"before takes steps, not .*: load a file first"):
        Step(RecordingSource(build.recording())).report(tmp_path / "page.html", before=before)
    assert not (tmp_path / "page.html").exists()
