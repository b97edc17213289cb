"""Windows count from the start of the step, in drawings as in answers."""

from __future__ import annotations

import csv
import json

import pytest

import collector
from collector.cli import main
from collector.formats.loading import load
from collector.protos import RunMetadata
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

WINDOWS = {"0ms..0.5ms": set(), "0.9ms..1.5ms": {"first"}, "3ms..3.6ms": {"second"}, "1ms..3.5ms": {"first", "second"}}


def work(gpu: SimulatedGpu) -> None:
    """The host is busy for a millisecond before the first call, and for two after it."""
    gpu.advance(1_000_000)
    gpu.launch("first", stream=7, duration_ns=100_000)
    gpu.synchronize()
    gpu.advance(2_000_000)
    gpu.launch("second", stream=9, duration_ns=100_000)
    gpu.synchronize()


def drawn(capsys, path, window: str, *options: str) -> set[str]:
    """The kernels that ``collector timeline`` draws."""
    output = path.with_name("drawn.json")
    output.unlink(missing_ok=True)
    main(["timeline", str(path), "-o", str(output), "--window", window, *options])
    capsys.readouterr()
    if not output.exists():
        return set()
    events = json.loads(output.read_text())["traceEvents"]
    return {event["name"] for event in events if event.get("cat") == "kernel"}


def answered(capsys, path, window: str) -> set[str]:
    """The kernels that ``collector stats`` counts."""
    main(["stats", str(path), "--question", "kernels", "--window", window, "--csv"])
    return {row["name"] for row in csv.DictReader(capsys.readouterr().out.splitlines())}


@pytest.mark.medium
@pytest.mark.parametrize("suffix", ["pb", "gpurec", "json", "xplane.pb", "journal"])
def test_a_window_has_the_same_kernels_in_each_command(tmp_path, capsys, suffix):
    path = tmp_path / f"step.{suffix}"
    output = {"journal": path, "stream": True} if suffix == "journal" else {"path": path}
    with SimulatedGpu() as gpu, collector.trace(**output):
        work(gpu)
    for window, kernels in WINDOWS.items():
        first, last = (float(side.removesuffix("ms")) / 1000 for side in window.split(".."))
        assert drawn(capsys, path, window) == kernels, window
        assert answered(capsys, path, window) == kernels, window
        assert set(load(path, window=(first, last)).kernels.names()) == kernels, window


@pytest.mark.parametrize("with_recording", [True, False])
def test_the_devices_that_are_drawn_do_not_move_a_window(tmp_path, capsys, with_recording):
    path = tmp_path / "step.pb"
    with SimulatedGpu() as gpu, collector.trace(path):
        work(gpu)
    if not with_recording:  # as a file of TensorFlow, which states no window
        step_stats = RunMetadata.FromString(path.read_bytes()).step_stats
        path.write_bytes(RunMetadata(step_stats=step_stats).SerializeToString())
    whole = {window: drawn(capsys, path, window) for window in WINDOWS}
    assert set().union(*whole.values()) == {"first", "second"}
    for window, kernels in whole.items():
        assert drawn(capsys, path, window, "--device", "stream:9") == kernels & {"second"}, window


def test_a_message_without_a_window_begins_with_its_first_event():
    with SimulatedGpu() as gpu, collector.trace() as step:
        work(gpu)
    text = collector.chrome_trace(step.step_stats, window_ns=(0, 500_000))
    assert {each["name"] for each in json.loads(text)["traceEvents"] if each.get("cat") == "kernel"} == {"first"}


def test_counters_begin_with_the_window():
    with SimulatedGpu() as gpu, collector.trace() as step:
        gpu.advance(1_000_000)
        gpu.memcpy("HtoD", 1 << 26)
        gpu.synchronize()
    (copy,) = step.recording.memcpys
    clock = step.recording.clock
    middle_ns = (copy.start_ns + copy.end_ns) // 2
    since_start = middle_ns - clock.cupti_start_ns
    for source in (step, step.recording):
        found = json.loads(collector.chrome_trace(source, window_ns=(since_start, None)))
        base_ns = int(found["otherData"]["base_time_ns"])
        first = next(event for event in found["traceEvents"] if event["ph"] == "C")
        assert first["args"] == {"bytes": 1 << 26}
        assert round(first["ts"] * 1000) + base_ns == middle_ns + clock.offset_ns


@pytest.mark.medium
def test_a_part_of_a_journal_without_launches_is_not_explained(tmp_path, capsys):
    journal = tmp_path / "run.journal"
    with SimulatedGpu() as gpu, collector.trace(journal=journal, stream=True):
        work(gpu)
    assert main(["timeline", str(journal), "-o", str(tmp_path / "part.json"), "--window", "0ms..0.5ms"]) == 2
    text = capsys.readouterr().err
    assert "likely causes" not in text
    assert "no slice overlaps the window. The step is " in text
