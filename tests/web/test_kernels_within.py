"""Kernels of a part of a step, which the page sums up itself, against the answer of Python about the same part."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from report_pages import RECORDED_AND_LARGE, page_of, slices

import collector
from collector import analysis
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.web.report_file import write_report
from collector.web.single_answers import AskedAnswer, single_answer

MODULE = Path(__file__).resolve().parents[2] / "web" / "src" / "kernels_within.js"
SCRIPT = """
import { readFileSync } from "node:fs";
const { hasAllSlices, kernelsWithin } = await import(process.argv[1]);
const { step, slices, parts } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(parts.map((part) => ["name", "stream"].map((by) =>
  hasAllSlices(step) && kernelsWithin(step.answers[`kernels/${by}`], step, slices, part, by)))));
"""

NOT_IN_SLICES = {"tensor_cores"}
"""Columns that whole names of kernels tell, which slices do not have."""


def within(path, parts):
    """What the page answers about parts of its only step: by name and by stream of each."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S SUMS ARE NOT TESTED: they need node")
    [step] = page_of(path)["steps"]
    columns = dict(zip(("lane", "start", "length", "name"), zip(*slices(path), strict=True), strict=True))
    asked = {"step": step, "slices": columns, "parts": [{"start": start, "end": end} for start, end in parts]}
    command = [node, "--input-type=module", "--eval", SCRIPT, MODULE.as_uri()]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def held_to_python(path, step, parts):
    for (start, end), answers in zip(parts, within(path, parts), strict=True):
        part = analysis.between(step, start, end)
        for by, found in zip(("name", "stream"), answers, strict=True):
            answer = analysis.kernels(part, by=by)
            assert {
                column["name"]: values for column, values in zip(found["columns"], found["values"], strict=True)
            } == {name: values.tolist() for name, values in answer.values.items() if name not in NOT_IN_SLICES}
            assert (found["rows"], found["totals"]) == (len(answer), answer.totals)
            asked = AskedAnswer(f"kernels/{by}", (start, end))
            assert found["longest"] == (single_answer(step, "step.pb", asked)["longest"] if len(answer) else [])
            assert found["cli"].endswith(f"--question kernels --by {by} --window {start}ns..{end}ns")
            named: dict[str, object] = {"analysis": analysis, "step": step}
            assert list(eval(found["python"], named)) == list(answer)


@pytest.mark.medium
@pytest.mark.parametrize("name", RECORDED_AND_LARGE)
def test_sums_of_a_part_are_those_of_python(shared, tmp_path, name):
    step = collector.load(shared / "data" / "gpu_traces" / name)
    write_report(tmp_path / "step.html", [(name, step)], max_size=10**9)
    length = step.recording.clock.window_ns
    chance = random.Random(name)
    parts = [tuple(sorted(chance.randrange(length + 1) for _ in range(2))) for _ in range(4)]
    first = int(step.recording.kernels.start_ns[0]) - step.recording.clock.cupti_start_ns
    held_to_python(tmp_path / "step.html", step, [*parts, (0, length), (first, first)])


@pytest.mark.medium
def test_a_kernel_that_is_named_like_a_memset_is_a_kernel(build, tmp_path):
    build.kernel("memset", 10, 20).memset(50, 10)
    step = Step(RecordingSource(build.recording()))
    write_report(tmp_path / "step.html", [("step", step)])
    held_to_python(tmp_path / "step.html", step, [(0, 100), (40, 100)])


@pytest.mark.medium
def test_a_kernel_that_only_touches_a_part_is_not_in_it(build, tmp_path):
    build.kernel("before", 50, 50).kernel("in", 110, 10).kernel("after", 200, 30)
    build.kernel("at begin", 100, 0, stream_id=8).kernel("at end", 200, 0, stream_id=8)
    step = Step(RecordingSource(build.recording()))
    write_report(tmp_path / "step.html", [("step", step)])
    held_to_python(tmp_path / "step.html", step, [(100, 200), (0, 100), (200, 300), (100, 100)])


@pytest.mark.medium
def test_kernels_that_run_beyond_a_step_count_whole_in_its_parts(build, tmp_path):
    build.kernel("before", 50, 100).kernel("in", 160, 10).kernel("behind", 190, 30)
    build.kernel("over", 20, 400, stream_id=8)
    step = Step(RecordingSource(analysis.between(build.recording(), 100, 200)))
    write_report(tmp_path / "step.html", [("step", step)])
    held_to_python(tmp_path / "step.html", step, [(0, 20), (0, 100), (60, 80), (95, 100)])
    assert [(start, length) for _, start, length, _ in slices(tmp_path / "step.html")] == [
        *((-50, 100), (60, 10), (90, 30), (-80, 400))
    ]


@pytest.mark.medium
def test_sums_need_exact_times(build, tmp_path):
    build.kernel("first", 10, 20)
    for length, is_summed in ((2**48 - 1, True), (2**48, False)):
        build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + length
        write_report(tmp_path / "step.html", [("step", Step(RecordingSource(build.recording())))])
        [answers] = within(tmp_path / "step.html", [(0, 1000)])
        assert [answer is not False for answer in answers] == [is_summed] * 2


@pytest.mark.medium
def test_a_page_that_lacks_slices_gives_no_sums(build, tmp_path):
    lengths = random.Random(1)
    for number in range(5_000):
        build.kernel(f"kernel_{number % 50}", 40 * number, lengths.randrange(90))
    write_report(tmp_path / "step.html", [("step", Step(RecordingSource(build.recording())))], max_size=300_000)
    assert within(tmp_path / "step.html", [(0, 1000)]) == [[False, False]]
