"""The same question has one number everywhere: Python, JSON, CSV, terminal, summaries, advice and limits."""

from __future__ import annotations

import csv
import io
import json
from functools import cache

import pytest
from captures import CaptureBuilder

import collector
from collector import analysis
from collector.analysis.activities import WorkClass
from collector.analysis.questions import QUESTIONS
from collector.cli import main
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.profiler import Profiler
from collector.profiler.advice.recording_columns import RecordingStep
from collector.profiler.advice.step_activity import Activity
from collector.profiler.advice.step_checkers import draining_synchronizations
from collector.profiler.profile_options import Options
from collector.profiler.step_reader import read_step
from collector.testing.plugin.figures import figures_of
from collector.text.quantities import time_text
from collector.web.report_data import step_data

RECORDINGS = (
    "torch_tutorial/h100_transformer_before.json.gz",
    pytest.param("hta/sampled_of128/rank0.json.gz", marks=pytest.mark.slow),
    "hta/a100_event_sync_multi_stream.json.gz",
    "hta/mi250_minitoy.json.gz",
    "nsys_ai/mock.sqlite.gz",
)
PLAIN = [name for name, question in QUESTIONS.items() if not question.of_ranks]


@cache
def loaded(path):
    return collector.load(path)


@pytest.fixture(params=RECORDINGS)
def step(request, shared):
    return loaded(shared / "data" / "gpu_traces" / request.param)


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """The file of a recording, for commands: read in a fraction of the time of the trace of another tool."""

    @cache
    def save(step):
        path = tmp_path_factory.mktemp("recorded") / "step.gpurec"
        step.save(path)
        return path

    return save


def printed(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("name", PLAIN)
def test_terminal_json_and_csv_have_the_numbers_of_python(step, saved, name, capsys):
    expected, path = QUESTIONS[name].ask(step), saved(step)
    (told,) = json.loads(printed(capsys, "stats", path, "--question", name, "--json"))
    assert told == json.loads(json.dumps(expected.to_json()))
    rows = list(csv.reader(io.StringIO(printed(capsys, "stats", path, "--question", name, "--csv"))))
    assert rows == list(csv.reader(io.StringIO(expected.to_csv())))
    text = words(printed(capsys, "stats", path, "--question", name))
    for column in expected.columns:
        if column.unit == "ns" and len(expected):
            assert time_text(abs(int(expected[column.name][0]))) in text, column.name


def test_busy_and_idle_time(step, capsys):
    devices, summary = analysis.devices(step), words(step.summary())
    assert words(printed(capsys, "summary", step.path)) == summary
    for row in devices:
        assert f"/gpu:{row['device_id']} {time_text(row['busy_ns'])} {time_text(row['idle_ns'])}" in summary
    busy, idle = (devices.totals[f"{name}_ns"] for name in ("busy", "idle"))
    assert idle == analysis.idle(step).totals["idle_ns"] == analysis.idle_gaps(step).totals["idle_ns"]
    assert busy == figures_of([step.recording]).device_time_ns
    alone = [step.recording] * 2
    assert 2 * busy == analysis.devices(alone).totals["busy_ns"]
    times = {row["part"]: row["now_ns"] for row in analysis.compare(step, step, by="time")}
    is_whole = analysis.compare(step, step, by="time").totals["before_steps"] == 1
    assert not is_whole or sum(spent for part, spent in times.items() if not part.startswith("idle")) == busy


def test_kernels(step):
    recording, answers = step.recording, [analysis.kernels(step, by=by) for by in QUESTIONS["kernels"].by]
    figures = figures_of([recording])
    for answer in answers:
        assert answer.totals["count"] == len(recording.kernels) == recording.ledger.kernels == figures.kernels
        assert answer.totals["total_ns"] == int(recording.kernels.duration_ns.sum()) == figures.kernel_time_ns
    title = f"Kernels: {figures.kernels:,} of {len(answers[0]):,} name"
    assert (title in words(step.summary())) == bool(figures.kernels)
    for row in list(answers[0])[:10]:
        assert f"{row['count']:,} {time_text(row['total_ns'])}" in words(step.summary())


def test_copies_and_memsets(step):
    answer, figures, recording = analysis.copies(step), figures_of([step.recording]), step.recording
    assert (
        answer.totals["count"] == figures.memcpys + figures.memsets == len(recording.memcpys) + len(recording.memsets)
    )
    assert answer.totals["num_bytes"] == figures.memcpy_bytes + figures.memset_bytes
    assert answer.totals["total_ns"] == int(recording.memcpys.duration_ns.sum() + recording.memsets.duration_ns.sum())


def test_time_by_annotation(step):
    answer, kernels, copies = analysis.ops(step), analysis.kernels(step), analysis.copies(step)
    assert answer.totals["self_ns"] == kernels.totals["total_ns"] + copies.totals["total_ns"]
    assert answer.totals["self_activities"] == kernels.totals["count"] + copies.totals["count"]
    assert answer.totals["self_activities"] == analysis.devices(step).totals["activities"]


def test_calls_and_launches(step):
    assert analysis.calls(step).totals["count"] == len(step.recording.api_calls) == step.recording.ledger.api_calls
    launches, delays = analysis.launches(step), analysis.launch_delays(step)
    assert launches.totals["activities"] == len(delays)
    assert (min(launches["min_delay_ns"], default=0), max(launches["max_delay_ns"], default=0)) == (
        min(delays["delay_ns"], default=0),
        max(delays["delay_ns"], default=0),
    )


def of_columns(step):
    return RecordingStep.of(step.recording)


def test_advice_has_the_numbers_of_the_questions(step):
    check_advice(step, Activity(read_step(step)))
    check_advice(step, Activity(of_columns(step)))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("hta/gp100_gpu_user_annotation.json.gz", of_columns),
        ("hta/gp100_gpu_user_annotation.json.gz", read_step),
        ("kineto/v100_resnet50_workers4.json.gz", of_columns),
        ("kineto/v100_resnet50_workers4.json.gz", read_step),
        ("nsys_ai/healthy_judged_1pct.sqlite.gz", of_columns),
        ("nsys_ai/h100_2gpu_1s.sqlite.gz", of_columns),
        ("nsys_ai/h100_2gpu_1s.sqlite.gz", read_step),
        pytest.param("nsys_ai/mfu_2gpu_before.sqlite.gz", of_columns, marks=pytest.mark.slow),
        pytest.param("nsys_ai/mfu_2gpu_before.sqlite.gz", read_step, marks=pytest.mark.slow),
    ],
)
def test_advice_has_these_numbers_in_unusual_recordings(shared, name, form):
    """Activities that take no time, calls that begin at none, and two processes with a GPU each."""
    step = loaded(shared / "data" / "gpu_traces" / name)
    check_advice(step, Activity(form(step)))


@pytest.mark.medium
def test_advice_has_these_numbers_whatever_processes_and_threads_did():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    times = st.tuples(st.integers(1, 4000), st.integers(1, 800))
    threads = st.tuples(st.integers(0, 2), st.integers(0, 2))
    kinds = st.sampled_from(["k", "ncclKernel", "a whole graph"])
    works = st.lists(st.tuples(times, st.integers(0, 1), st.integers(0, 8), kinds), min_size=1, max_size=12)
    launches = st.lists(st.tuples(times, threads), max_size=8)

    @hypothesis.given(works, launches, st.lists(st.tuples(times, threads), max_size=6))
    def check(works, launches, waits):
        build = CaptureBuilder()
        for (start, duration), device, correlation, kind in works:
            place = {"correlation_id": correlation, "device_id": device}
            if kind == "a whole graph":
                build.whole_graph(start, duration, **place)
            else:
                build.kernel(kind, start, duration, **place)
        calls = [(*launch, "cudaLaunchKernel", number) for number, launch in enumerate(launches, 1)]
        calls += [(*wait, "cudaEventSynchronize", 100 + number) for number, wait in enumerate(waits)]
        for (start, duration), (process, thread), name, correlation in calls:
            build.call(name, start, duration, correlation_id=correlation, process_id=process, thread_id=thread)
        step = Step(RecordingSource(build.recording()))
        forms = [Activity(form(step)) for form in (of_columns, read_step)]
        assert [[device.name for device in each.devices] for each in forms] == [
            [f"/gpu:{row['device_id']}" for row in analysis.devices(step)]
        ] * 2
        for activity in forms:
            check_advice(step, activity)
        drained = [[*draining_synchronizations(each, {"count": 1})] for each in forms]
        assert drained[0] == drained[1]

    check()


def check_advice(step, activity):
    for device in activity.devices:
        window = "step" if device.window_name == "the step" else "span"
        number = int(device.name.rpartition(":")[2])
        row = next(row for row in analysis.devices(step, window=window) if row["device_id"] == number)
        idle = next(row for row in analysis.idle(step, window=window) if row["device_id"] == number)
        assert (device.window_ns, device.times.busy_ns) == (row["window_ns"], row["busy_ns"])
        communication = device.union(device.is_communication)
        exposed_ns = device.times.exposed(WorkClass.COMMUNICATION)
        hiding = device.union(device.is_compute | device.is_graph)
        assert communication.length - communication.overlap(hiding) == exposed_ns == row["exposed_communication_ns"]
        assert device.union(device.is_graph).length == row["graph_ns"]
        causes = {name: int(times.sum()) for name, times in device.idle.causes._asdict().items()}
        assert causes == {
            "queued": idle["kernel_gap_ns"] + idle["dependency_ns"],
            "synchronizing": idle["synchronize_ns"],
            "unlaunched": idle["host_ns"],
            "latency": idle["launch_latency_ns"],
            "unknown": idle["no_launch_ns"],
            "tail": idle["tail_ns"],
        }
    of_names = sorted(
        (name, count, spent) for device in activity.devices for name, count, spent in device.by_name(device.is_kernel)
    )
    if len(activity.devices) == 1:
        rows = analysis.kernels(step)
        assert of_names == sorted((row["name"], row["count"], row["total_ns"]) for row in rows)


def test_the_profiler_has_the_time_of_the_questions_in_whole_microseconds(step):
    profiler = Profiler()
    profiler.add_recorded_step(0, step)
    total_micros = profiler.reporter.ask("scope", Options()).message.total_accelerator_exec_micros
    names = len(analysis.kernels(step, by="op")) + len(analysis.copies(step))  # each is rounded by itself
    assert abs(total_micros - analysis.ops(step).totals["self_ns"] / 1000) <= names


@pytest.mark.parametrize(
    "name", ["truncated_mid_event", "nan_and_infinity", "invalid_utf8_names", "negative_missing_dur_and_args"]
)
def test_every_door_states_what_could_not_be_read(shared, tmp_path, name, capsys):
    step = loaded(shared / "data" / "gpu_traces" / "broken_derived" / f"{name}.json.gz")
    losses = step.ledger.losses()
    assert losses
    step.save(tmp_path / "step.pb")
    for each in (step, step.recording, collector.load(tmp_path / "step.pb")):
        assert [*analysis.kernels(each).losses] == losses
        assert all(words(loss) in words(each.summary()) for loss in losses)
    (told,) = json.loads(printed(capsys, "stats", step.path, "--question", "kernels", "--json"))
    assert told["losses"] == losses
    assert step_data(step, "step").described["losses"] == losses
    part = analysis.between(step, 0, step.recording.clock.window_ns // 2)
    assert [*analysis.kernels(part).losses] == part.ledger.losses() == losses
