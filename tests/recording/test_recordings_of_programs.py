"""Recordings of known programs: those from real GPUs in tests/data/gpu, and here and now from the simulator.

``tests/gpu/recorded_programs.py`` writes each with the facts that the program, or another profiler, counted. Folders of
tests/data/gpu have the names of cards.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collector
from collector.analysis.idle import CAUSES
from collector.analysis.questions import QUESTIONS
from collector.recording.cupti_enums import COPY_KINDS
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.recording.text_columns import text_column

TESTS = Path(__file__).resolve().parent.parent
PROGRAMS = TESTS / "gpu" / "recorded_programs.py"
FROM_CARDS = sorted((TESTS / "data" / "gpu").glob("*/*.gpurec"))
ON_THE_SIMULATOR = ("cuda_step", "nvtx_step")


@dataclass(frozen=True)
class Recorded:
    """A recording with its facts."""

    path: Path
    step: Any
    facts: dict[str, Any]
    is_simulated: bool

    @property
    def recording(self) -> Recording:
        return self.step.recording


@pytest.fixture(
    scope="module",
    params=[*ON_THE_SIMULATOR, *(str(path.relative_to(TESTS / "data" / "gpu")) for path in FROM_CARDS)],
)
def recorded(request, tmp_path_factory) -> Recorded:
    is_simulated = request.param in ON_THE_SIMULATOR
    if is_simulated:
        folder = tmp_path_factory.mktemp("recorded")
        command = [sys.executable, str(PROGRAMS), request.param, str(folder), "--simulated"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        path = folder / f"{request.param}.gpurec"
    else:
        path = TESTS / "data" / "gpu" / request.param
    facts = json.loads(path.with_suffix(".json").read_text())
    return Recorded(path, collector.load(path), facts, is_simulated)


def test_every_program_that_the_simulator_can_run_is_tried(load_module):
    assert load_module(PROGRAMS).SIMULATED == ON_THE_SIMULATOR


@pytest.mark.medium
def test_it_has_the_work_that_the_program_did(recorded):
    recording, facts = recorded.recording, recorded.facts
    assert (len(recording.kernels), len(recording.memcpys), len(recording.memsets)) == (
        facts["kernels"], facts["memcpys"], facts["memsets"],
    )  # fmt: skip
    names = Counter(recording.kernels.demangled_names())
    for part, count in facts["kernels_by_name"].items():
        assert sum(found for name, found in names.items() if part in name) == count, part
    copied: Counter[str] = Counter()
    for copy in recording.memcpys:
        copied[COPY_KINDS[copy.copy_kind]] += copy.num_bytes
    if facts["copied_bytes"]:
        assert copied == facts["copied_bytes"]
    if facts["filled_bytes"]:
        assert recording.memsets.num_bytes.sum() == facts["filled_bytes"]
    assert len(recording.graph_launches) == facts["graphs"] or not facts["graphs"]
    streams = {int(stream) for name in ACTIVITY_TABLES for stream in getattr(recording, name).stream_id}
    assert len(streams) == facts["streams"] or not facts["streams"]


@pytest.mark.medium
def test_its_work_has_the_names_that_the_program_gave_it(recorded):
    recording = recorded.recording
    found: Counter[str] = Counter()
    for name in ACTIVITY_TABLES:
        found += Counter(recording.annotations_of(getattr(recording, name)))
    assert {path: found[path] for path in recorded.facts["annotations"]} == recorded.facts["annotations"]
    named = set(recording.environment.get("device_labels", {}).values())
    assert set(recorded.facts["stream_names"]) <= named


def test_nothing_was_lost_and_every_time_is_possible(recorded):
    recording = recorded.recording
    assert recording.ledger.record_losses() == []
    assert recording.environment["simulated"] == recorded.is_simulated
    clock = recording.clock
    for name in ACTIVITY_TABLES:
        table = getattr(recording, name)
        assert (table.start_ns > 0).all()
        assert (table.end_ns >= table.start_ns).all()
        assert (table.start_ns >= clock.cupti_start_ns).all()
        assert (table.end_ns <= clock.cupti_stop_ns).all()
    rows = recording.launch_rows(recording.kernels.correlation_id)
    assert (rows >= 0).all()
    assert (recording.kernels.start_ns >= recording.api_calls.start_ns[rows]).all()


def test_the_kernels_of_a_stream_run_one_after_another(recorded):
    if recorded.facts["witness"] != "the program":
        pytest.skip("a library may launch a kernel that begins before the one before it has ended (PDL)")
    kernels = recorded.recording.kernels
    outside = kernels.graph_id == 0  # nodes of a graph may run beside each other on one stream
    for stream in np.unique(kernels.stream_id[outside]):
        chosen = np.flatnonzero(outside & (kernels.stream_id == stream))
        chosen = chosen[np.argsort(kernels.start_ns[chosen], kind="stable")]
        assert (kernels.start_ns[chosen[1:]] >= kernels.end_ns[chosen[:-1]]).all()


def test_the_message_is_the_same_recording(recorded, tmp_path):
    path = recorded.path.with_suffix(".pb")  # written by the session; of cards only the recording is kept
    if not path.exists():
        path = tmp_path / "step.pb"
        recorded.step.save(path)
    message = collector.load(path).recording
    for table, columns in SCHEMA.items():
        ours, theirs = getattr(recorded.recording, table), getattr(message, table)
        for column in columns:
            if text_column(column):
                assert ours.texts(column) == theirs.texts(column), (table, column)
            else:
                assert np.array_equal(getattr(ours, column), getattr(theirs, column)), (table, column)


@pytest.mark.parametrize("suffix", ["json", "json.gz", "pb", "gpurec", "xplane.pb"])
def test_all_its_work_is_in_the_file_of_every_format_that_we_read(recorded, tmp_path, suffix):
    path = tmp_path / f"step.{suffix}"
    recorded.step.save(path)
    found = collector.load(path).recording
    for name in ACTIVITY_TABLES:
        assert len(getattr(found, name)) == len(getattr(recorded.recording, name)), name
        assert getattr(found, name).duration_ns.sum() == getattr(recorded.recording, name).duration_ns.sum(), name


@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if not question.of_ranks])
def test_every_question_has_an_answer(recorded, name):
    answer = QUESTIONS[name].ask(recorded.step)
    assert answer.question
    assert json.dumps(answer.to_json(), allow_nan=False)
    assert answer.text()


def test_idle_and_busy_time_are_the_time_of_the_step(recorded):
    (device,), (idle,) = QUESTIONS["devices"].ask(recorded.step), QUESTIONS["idle"].ask(recorded.step)
    clock = recorded.recording.clock
    assert device["busy_ns"] + device["idle_ns"] == device["window_ns"] == clock.cupti_stop_ns - clock.cupti_start_ns
    assert sum(idle[f"{cause}_ns"] for cause in CAUSES) == idle["idle_ns"] == device["idle_ns"]
