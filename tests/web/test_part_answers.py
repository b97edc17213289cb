"""Answers about a part of a step, which the page makes itself, against those of Python about the same part."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from captures import START_NS
from many_annotations import VALIDATE_NS, many_annotations
from random_programs import random_program
from random_steps import random_step
from report_pages import RECORDED_AND_LARGE, islands, page_of

import collector
from collector import analysis
from collector.analysis.answer import Answer, Column
from collector.analysis.units import values_of
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.cupti_enums import DEGREE_CAPTURED
from collector.web.given_rows import MOST_ROWS, given_rows
from collector.web.report_file import write_report
from collector.web.single_answers import AskedAnswer, single_answer

MODULES = Path(__file__).resolve().parents[2] / "web" / "src" / "part"
SCRIPT = """
import { readFileSync } from "node:fs";
const [{ cutTo, rowsOf }, { follows, partAnswer }] = await Promise.all(process.argv.slice(1).map((at) => import(at)));
const { step, rows, parts } = JSON.parse(readFileSync(0, "utf8"));
const held = rowsOf(step.rows, Uint8Array.from(Buffer.from(rows, "base64")));
const keys = Object.keys(step.answers).filter((key) => follows(step.answers, key));
console.log(JSON.stringify(parts.map((part) => {
  const asked = { info: step.rows, rows: held, cut: cutTo(held, part), answers: step.answers, losses: step.losses };
  return Object.fromEntries(keys.map((key) => [key, partAnswer(asked, key)]));
})));
"""
FOLLOWING = {
    *(
        "devices",
        "concurrency",
        "streams",
        "overlap/device",
        "overlap/stream",
        "overlap/group",
        "idle",
        "idle_ops",
        "idle_gaps",
    ),
    *(f"kernels/{by}" for by in ("name", "whole_name", "op", "shape", "stream")),
    *("tensor_cores/use", "tensor_cores/name", "occupancy", "ops", "copies", "launches", "launch_delays", "calls"),
    *("queue/stream", "queue/depth", "annotation_times/name", "annotation_times/path", "tracing_cost"),
    *("memory/pool", "memory/op", "memory_growth/step", "memory_growth/op", "backward"),
}
"""Answers that the page makes about parts of a step; all others are about whole steps."""


def of_parts(path, parts):
    """What the page answers about parts of its only step, by the keys of the answers."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S ANSWERS ABOUT PARTS ARE NOT TESTED: they need node")
    [step] = page_of(path)["steps"]
    assert step["rows"]
    asked = {
        "step": step,
        "rows": base64.b64encode(islands(path)["rows-0"]).decode(),
        "parts": [{"start": start, "end": end} for start, end in parts],
    }
    modules = [(MODULES / name).as_uri() for name in ("rows.js", "answers.js")]
    command = [node, "--input-type=module", "--eval", SCRIPT, *modules]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def plain(own, values):
    """The page's values; its JSON writes a fraction that is whole as an integer, which Python reads exactly."""
    pairs = zip(own, values, strict=True)
    return [float(each) if type(each) is int and type(value) is float else each for each, value in pairs]


def held_to_python(path, step, parts, name="step.pb"):
    answered = set(page_of(path)["steps"][0]["answers"])
    for part, found in zip(parts, of_parts(path, parts), strict=True):
        assert (answered & FOLLOWING) - set(found) == set()
        of_ledger = analysis.between(step, *part).ledger.losses()
        for key, answer in found.items():
            expected = json.loads(json.dumps(single_answer(step, name, AskedAnswer(key, part))))
            for column, own, values in zip(answer["columns"], answer["values"], expected["values"], strict=True):
                assert plain(own, values) == values, (part, key, column["name"])
            for field in (
                *("rows", "totals", "part", "python", "cli", "definition"),
                *("chosen_by", "left_out", "largest", "longest", "notes"),
            ):
                assert answer[field] == expected[field], (part, key, field)
            # The losses of the ledger are those of the whole step on every page.
            own_losses = expected["losses"][len(of_ledger) :]
            assert answer["losses"] == [*step.ledger.losses(), *own_losses], (part, key)


def parts_of(step, chance, count=4):
    length = step.recording.clock.window_ns
    parts = [tuple(sorted(chance.sample(range(length + 1), 2))) for _ in range(count)]
    first = int(step.recording.kernels.start_ns[0]) - step.recording.clock.cupti_start_ns
    return [*parts, (0, length), (first, first + 1)]


@pytest.mark.medium
@pytest.mark.parametrize("name", RECORDED_AND_LARGE)
def test_answers_about_parts_are_those_of_python(shared, tmp_path, name):
    step = collector.load(shared / "data" / "gpu_traces" / name)
    write_report(tmp_path / "step.html", [("step.pb", step)], max_size=10**9)
    held_to_python(tmp_path / "step.html", step, parts_of(step, random.Random(name)))


def written(path, recording):
    step = Step(RecordingSource(recording))
    write_report(path, [("step.pb", step)], max_size=10**9)
    return step


NODES = ("autograd::engine::evaluate_function: AddmmBackward0", "step 3/autograd::engine::evaluate_function: é")


def program(build, chance):
    """Adds a program of several devices, streams and threads, with launches, waits, copies, memory and annotations."""
    names = ["gemm<float>", "gemm<int>", "ncclDevKernel_AllReduce", "sm90_xmma_gemm_f16", "é_norm", "\U0001f600_loss"]
    build.environment["source"] = chance.choice(["native", "replay", "chrome"])
    processes = chance.choice([1, 2])
    threads = chance.choice([[11], [0, 11, 12]])
    now = 0
    for number in range(60):
        now += chance.choice([0, 0, 5, 40, 3000])
        correlation = number + 1
        device, stream = chance.randrange(2), chance.randrange(7, 9)
        where = {"device_id": device, "stream_id": stream, "correlation_id": correlation}
        graph = {"graph_id": 3, "captured_external_id": chance.randrange(1, 61)} if chance.random() < 0.2 else {}
        if chance.random() < 0.5:
            stated = {**where, "context_id": 1, "start_ns": START_NS + now + 20}
            group = build.text(chance.choice(["data", "tensor"]))
            build.raw("collectives", end_ns=stated["start_ns"] + 10, group_name_id=group, **stated)
        if chance.random() < 0.8:
            build.call(
                chance.choice(["cudaLaunchKernel_v7000", "cuLaunchKernel"]),
                now,
                30,
                correlation_id=correlation,
                domain=chance.choice([1, 2]),
                return_value=chance.choice([0, 0, 1]),
                process_id=41 + device % processes,
                thread_id=chance.choice(threads),
            )
        if chance.random() < 0.2:
            build.call(
                "cudaStreamSynchronize_v3020",
                now + 30,
                chance.choice([chance.randrange(200), 3000]),
                process_id=41 + device % processes,
                thread_id=chance.choice(threads),
            )
        kind = chance.random()
        began = now + chance.choice([-10, 20, 20, 500]) if now > 10 else now
        if kind < 0.6:
            shape = {"grid_x": chance.choice([1, 80]), "block_x": chance.choice([32, 256]), "registers_per_thread": 32}
            build.kernel(chance.choice(names), began, chance.choice([0, 10, 700, 700]), **shape, **where, **graph)
        elif kind < 0.85:
            sizes = {"num_bytes": chance.choice([0, 4096]), "copy_kind": chance.choice([1, 2])}
            build.memcpy(began, chance.choice([10, 300]), **sizes, **where, **graph)
        elif kind < 0.92:
            build.memset(began, 10, num_bytes=64, **where, **graph)
        else:
            build.whole_graph(began, chance.choice([0, 10, 700]), graph_id=chance.choice([8, 9]), **where)
        if chance.random() < 0.1:
            build.whole_graph(began, 400, graph_id=3, graph_degree=DEGREE_CAPTURED, num_nodes=2, **where)
        if chance.random() < 0.3:
            operation = {"operation": chance.choice([1, 2]), "address": chance.randrange(3), "num_bytes": 64 * number}
            build.raw(
                "memory_operations", start_ns=START_NS + now, memory_kind=chance.choice([1, 2]), **operation, **where
            )
        if chance.random() < 0.2:
            times = {"start_ns": START_NS + now, "end_ns": START_NS + now + 40}
            whose = {"object_kind": chance.choice([0, 1]), "process_id": 41 + device % processes}
            build.raw("overheads", **times, **whose, overhead_kind=chance.choice([1, 1 << 16, 2 << 16, 5 << 16]))
        if chance.random() < 0.5:
            path = chance.choice(["train", "train/layer", "loss", "step 3", "Step#4", "step 3/AddmmBackward0", *NODES])
            build.annotation(path, max(now - chance.randrange(2000), 0), 2100, number + 1, correlation)
            build.rows["annotations"][-1]["op_sequence"] = chance.choice([0, 1, 2, 3])
            build.rows["annotations"][-1]["thread_id"] = chance.choice([11, 11, 11, 12])
    return build


@pytest.mark.medium
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 6))])
def test_answers_about_parts_of_made_up_programs(build, tmp_path, seed):
    chance = random.Random(seed)
    step = written(tmp_path / "step.html", program(build, chance).recording())
    end = int(step.recording.api_calls.end_ns.max()) - START_NS
    parts = [tuple(sorted(chance.sample(range(end), 2))) for _ in range(12)]
    held_to_python(tmp_path / "step.html", step, [*parts, (0, end), (1_000_000 - 1, 1_000_000)])


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_program, random_step])
def test_answers_about_parts_of_any_program(tmp_path_factory, make):
    """Also about parts that begin and end where something does."""
    hypothesis = pytest.importorskip("hypothesis")
    from properties import examples

    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]

    # The seeds say nothing about the size of a step, so that smaller ones are no simpler.
    @hypothesis.given(hypothesis.strategies.integers(0, 1 << 32))
    @hypothesis.settings(max_examples=examples(20), derandomize=True, phases=phases)
    def check(seed):
        chance = random.Random(seed)
        path = tmp_path_factory.mktemp("pages") / "step.html"
        step = written(path, make(chance).recording())
        length = step.recording.clock.window_ns
        tables = [getattr(step.recording, name) for name in ("kernels", "memcpys", "api_calls", "annotations")]
        ends = [int(time) - START_NS for table in tables for time in (*table.start_ns, *table.end_ns)] or [0]
        times = [
            (chance.choice(ends) + chance.choice([-1, 0, 0, 1]), chance.randrange(-9, length + 9)) for _ in range(8)
        ]
        drawn = chance.sample([time for pair in times for time in pair], 16)
        parts = [tuple(sorted(pair)) for pair in zip(drawn[::2], drawn[1::2], strict=True)]
        held_to_python(path, step, [*parts, (0, length), (0, 0), (length, length)])

    check()


@pytest.mark.medium
def test_a_graph_in_which_nothing_runs_in_a_part_keeps_its_call(build, tmp_path):
    """Also beside a graph that was recorded as a whole, whose row is counted in the table of all launches."""
    build.call("cudaGraphLaunch_v10000", 5, 10, correlation_id=1).annotation("decode", 4, 12, 1, 1)
    build.kernel("gemm", 20, 10, correlation_id=1, graph_id=3).kernel("norm", 80, 10, correlation_id=1, graph_id=3)
    build.whole_graph(20, 70, correlation_id=1, graph_id=3, graph_degree=DEGREE_CAPTURED, num_nodes=2)
    build.call("cudaGraphLaunch_v10000", 25, 10, correlation_id=2).whole_graph(60, 50, correlation_id=2)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(40, 50), (40, 70), (85, 200), (0, 200)])
    [found] = of_parts(tmp_path / "step.html", [(40, 50)])
    assert (found["calls"]["totals"]["count"], found["annotation_times/name"]["values"][0]) == (1, ["decode"])


@pytest.mark.medium
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_a_part_of_a_step_has_parts_itself(build, tmp_path, seed):
    """It has calls, annotations and work that begin before it."""
    chance = random.Random(seed)
    whole = program(build, chance).recording()
    end = int(whole.api_calls.end_ns.max()) - START_NS
    for number in range(4):
        start, stop = sorted(chance.sample(range(end), 2))
        part = analysis.between(whole, start, stop)
        tables = (part.api_calls, part.kernels, part.annotations)
        assert number or min(int(table.start_ns.min(initial=0)) for table in tables) < part.clock.cupti_start_ns
        step = written(tmp_path / "step.html", part)
        parts = [tuple(sorted(chance.sample(range(stop - start + 1), 2))) for _ in range(6)]
        held_to_python(tmp_path / "step.html", step, [*parts, (0, stop - start)])


@pytest.mark.medium
def test_an_annotation_of_a_moment_at_an_end_of_a_part_keeps_its_path(build, tmp_path):
    build.environment["source"] = "chrome"
    build.annotation("train", 100, 400, 1).annotation("layer", 100, 300, 2).annotation("mark", 100, 0, 3)
    build.annotation("mark", 500, 0, 4).kernel("gemm", 50, 10).kernel("gemm", 600, 10)
    step = written(tmp_path / "step.html", build.recording())
    paths = [
        sorted(analysis.annotation_times(analysis.between(step, *part), by="path")["path"])
        for part in ((0, 100), (500, 700), (100, 100), (50, 99))
    ]
    assert paths[0] == paths[2] == ["train", "train/layer", "train/layer/mark"]
    assert paths[1] == ["train", "train/mark"]
    assert paths[3] == []
    held_to_python(tmp_path / "step.html", step, [(0, 100), (500, 700), (100, 100), (50, 99), (0, 1000)])


@pytest.mark.medium
def test_memory_operations_of_an_unknown_kind_are_there_but_not_counted(build, tmp_path):
    for number, operation in enumerate((1, 5, 2, 5)):
        times = {"start_ns": START_NS + 100 * (number + 1), "operation": operation, "address": 64, "num_bytes": 8}
        build.raw("memory_operations", memory_kind=3, **times)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(150, 250), (150, 450), (0, 500), (0, 50)])


@pytest.mark.medium
def test_what_began_before_a_step_is_counted_whole_in_its_parts(build, tmp_path):
    for number in range(10):
        build.call("cudaLaunchKernel_v7000", 1000 + 100 * number, 50, correlation_id=number + 1)
        build.kernel(f"kernel_{number % 3}", 10_000 + 50_000 * number, 40_000, correlation_id=number + 1)
    build.annotation("forward", 900, 30_000, 77, 1, 2, 3, 4, 5)
    analysis.between(build.recording(), 30_000, 400_000).save(tmp_path / "part.gpurec")
    step = collector.load(tmp_path / "part.gpurec")
    write_report(tmp_path / "step.html", [("step.pb", step)])
    held_to_python(tmp_path / "step.html", step, [(0, 15_000), (10_000, 200_000), (0, 370_000)])
    [found] = of_parts(tmp_path / "step.html", [(0, 15_000)])
    assert found["kernels/name"]["values"][:3] == [["kernel_0"], [1], [40_000]]


@pytest.mark.medium
def test_copies_of_impossible_sizes_have_unknown_ones_in_a_part(build, tmp_path):
    build.memcpy(0, 100, num_bytes=2**64 - 1).memcpy(200, 100, num_bytes=4096).memset(500, 100, num_bytes=2**60)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(0, 1000), (0, 150), (150, 1000)])


@pytest.mark.medium
def test_nothing_ran_in_a_part(build, tmp_path):
    step = written(tmp_path / "step.html", build.kernel("gemm", 10, 20).recording())
    held_to_python(tmp_path / "step.html", step, [(500, 600)])


@pytest.mark.medium
def test_what_was_launched_under_an_annotation_before_the_step_is_asked_by_annotation(build, tmp_path):
    build.annotation("train", -50, 90, 1, 1).kernel("gemm", 10, 20, correlation_id=1).kernel("norm", 50, 20)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(0, 40), (0, 60), (50, 60)])
    assert of_parts(tmp_path / "step.html", [(0, 40)])[0]["ops"]["values"][0] == ["train"]


@pytest.mark.medium
def test_memory_of_a_part_grows_in_the_steps_that_overlap_it(build, tmp_path):
    for number in range(3):
        build.annotation(f"step {number}", 100 * number, 100, 500 + number, 1 + number)
        build.call("cudaLaunchKernel", 100 * number + 10, 20, correlation_id=1 + number)
        build.kernel("gemm", 100 * number + 110, 20, correlation_id=1 + number)
        moved = {"address": number, "num_bytes": 64, "memory_kind": 3, "operation": 1}
        build.raw("memory_operations", start_ns=START_NS + 100 * number + 50, **moved)
    step = written(tmp_path / "step.html", build.recording())
    parts = [(100, 300), (100, 200), (0, 300)]
    held_to_python(tmp_path / "step.html", step, parts)
    names = [found["memory_growth/step"]["values"][1] for found in of_parts(tmp_path / "step.html", parts)]
    assert names == [["step 1", "step 2"], [""], ["step 0", "step 1", "step 2"]]


@pytest.mark.medium
def test_memory_that_is_released_when_a_step_of_a_part_begins_is_not_held_in_it(build, tmp_path):
    build.kernel("gemm", 10, 20).annotation("step 1", 100, 100, 501).annotation("step 2", 200, 100, 502)
    for at, operation, address, num_bytes in ((50, 1, 1, 1000), (100, 2, 1, 1000), (160, 1, 3, 500), (200, 2, 3, 500)):
        moved = {"address": address, "num_bytes": num_bytes, "memory_kind": 3}
        build.raw("memory_operations", start_ns=START_NS + at, operation=operation, **moved)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(0, 400), (40, 300)])


@pytest.mark.medium
@pytest.mark.parametrize("source", ["native", "chrome"])
def test_what_was_launched_in_nested_annotations_before_a_part_has_their_path(build, tmp_path, source):
    build.environment["source"] = source
    build.call("cudaLaunchKernel", 120, 10, correlation_id=1).kernel("gemm", 500, 20, correlation_id=1)
    build.call("cudaLaunchKernel", 170, 10, correlation_id=2).kernel("gemm", 600, 20, correlation_id=2)
    build.annotation("model", 100, 200, 1).annotation("model/conv", 110, 50, 2, 1).annotation("loss", 310, 20, 3)
    build.annotation("model/moment", 170, 0, 4, 2).annotation("moment", 160, 0, 5)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(500, 520), (600, 620), (105, 600), (170, 180)])
    [found] = of_parts(tmp_path / "step.html", [(500, 520)])
    assert found["ops"]["values"][0] == ["model", "model/conv"]
    assert found["annotation_times/name"]["totals"]["count"] == 2


@pytest.mark.medium
def test_the_path_of_ranges_that_enclose_each_other_without_end_is_cut(build, tmp_path):
    build.environment["source"] = "chrome"
    names = [f"range {number} \N{GRINNING FACE} of a deep recursion" for number in range(300)]
    for number, name in enumerate(names):
        build.annotation(name, 100 + number, 2000 - 2 * number, number + 1, *([1] if number == 299 else []))
    build.call("cudaLaunchKernel", 500, 10, correlation_id=1).kernel("gemm", 3000, 20, correlation_id=1)
    step = written(tmp_path / "step.html", build.recording())
    held_to_python(tmp_path / "step.html", step, [(3000, 3020), (450, 3010)])
    *_, deepest = analysis.ops(step)["path"]
    assert deepest == "/".join(names)[:4095] + "…"
    assert max(map(len, analysis.ops(step)["path"])) == 4096


@pytest.mark.medium
def test_of_more_annotations_than_fit_those_with_most_time_are_given(build, tmp_path):
    step = written(tmp_path / "step.html", many_annotations(build).recording())
    parts = [(0, 1_000_000), (0, 905_000), (100_000, 590_000)]
    held_to_python(tmp_path / "step.html", step, parts)
    ops = of_parts(tmp_path / "step.html", parts)[0]["ops"]
    assert ops["rows"] > len(ops["values"][0]) == MOST_ROWS
    assert (ops["chosen_by"], ops["left_out"] != []) == ("total_ns", True)
    [path, self_ns] = ([each["name"] for each in ops["columns"]].index(name) for name in ("path", "self_ns"))
    assert (ops["largest"][path][0], ops["largest"][self_ns][0]) == ("validate", VALIDATE_NS)
    assert "validate" in ops["values"][path]


TREES = """
const { givenRows } = await import(process.argv[1]);
const columns = ["path", "depth", "total_ns"].map((name) => ({ name }));
const asked = JSON.parse(process.argv[2]);
console.log(JSON.stringify(asked.map(([rows, most]) => {
  const given = givenRows(rows.map(([path, depth, total_ns]) => ({ path, depth, total_ns })), columns, most);
  return [given.rows.map((row) => row.path), given.chosen_by, given.left_out];
})));
"""


@pytest.mark.medium
def test_rows_of_a_tree_are_chosen_as_in_python():
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S CHOICE OF ROWS IS NOT TESTED: it needs node")
    chance = random.Random(0)
    asked, expected = [], []
    columns = (Column("path", "text", ""), Column("depth", "number", ""), Column("total_ns", "ns", ""))
    for _ in range(200):
        depths = [0]
        for _ in range(chance.randrange(40)):
            depths.append(chance.randrange(depths[-1] + 2))
        rows = [[str(place), depth, chance.randrange(20)] for place, depth in enumerate(depths)]
        values = {
            column.name: values_of(list(of), column.unit)
            for column, of in zip(columns, zip(*rows, strict=True), strict=True)
        }
        most = chance.randrange(1, 40)
        given = given_rows(Answer("ops", "", columns, values), most)
        asked.append((rows, most))
        expected.append(
            [[str(place) for place in given.places], given.chosen_by, [list(each) for each in given.left_out]]
        )
    command = [node, "--input-type=module", "--eval", TREES, (MODULES / "given_rows.js").as_uri(), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected


MANY_LAUNCHES = """
const { partAnswer } = await import(process.argv[1]);
const count = 300000;
const [zeros, ones] = [0, 1].map((value) => new Float64Array(count).fill(value));
const rows = {
  work: { start: zeros.map((_, row) => row + 7), work_class: zeros, call: zeros.map((_, row) => row + 1) },
  calls: { start: zeros.map((_, row) => row), length: ones, code: zeros },
};
const columns = ["api", "min_queue_ns", "max_queue_ns"].map((name) => ({ name }));
const cut = { part: { start: 0, end: count }, work: Array.from(zeros.keys()) };
const info = { notes: { losses: {}, questions: { launches: { tables: ["kernels"] } } } };
const answers = { calls: { values: [["cudaLaunchKernel"]] }, launches: { columns, totals: {}, python: "", cli: "" } };
console.log(JSON.stringify(partAnswer({ info, rows, cut, answers, losses: [] }, "launches").values));
"""


@pytest.mark.medium
def test_a_part_may_have_more_launches_than_a_function_takes_arguments():
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S ANSWERS ABOUT PARTS ARE NOT TESTED: they need node")
    command = [node, "--input-type=module", "--eval", MANY_LAUNCHES, (MODULES / "answers.js").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["cudaLaunchKernel"], [6], [6]]


@pytest.mark.medium
def test_a_page_has_rows_only_where_all_of_them_fit(build, tmp_path):
    for number in range(300):
        build.kernel(f"kernel_{number % 50}", 300 * number, 7 * number % 90, correlation_id=number + 1)
    path, step = tmp_path / "step.html", Step(RecordingSource(build.recording()))
    whole = write_report(path, [("step.pb", step)])
    assert page_of(path)["steps"][0]["rows"]
    assert write_report(path, [("step.pb", step)], max_size=whole.num_bytes - 1).num_bytes < whole.num_bytes
    assert page_of(path)["steps"][0]["rows"] is None
    assert "rows-0" not in islands(path)
    assert write_report(path, [("step.pb", step)], max_size=whole.num_bytes) == whole
    assert page_of(path)["steps"][0]["rows"]
