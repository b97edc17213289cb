"""What `collector run` and `collector attach` print about a recording that has ended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from collector.analysis.summary import summarize
from collector.cli._recorded_steps import print_recorded
from collector.cli.run import _print
from collector.formats.registry import RecordingSource, Step

CUT = "1 launch at the edges of this part is cut: its call or activities are in another part"


def step_of(recording) -> Step:
    return Step(RecordingSource(recording))


@pytest.fixture
def part(build, start_ns):
    """A part of a recording, with one launch whose kernel is in the next part."""
    build.launch(1, 1000).kernel("before", 2000, correlation_id=1)
    build.launch(2, 3000).kernel("after", 9000, correlation_id=2)
    return build.recording().between(None, start_ns + 5000)


def test_a_cut_launch_is_in_the_summary_and_is_no_loss(part):
    assert part.ledger.launches_cut == 1
    text = summarize(part)
    assert CUT in " ".join(text.split())
    assert "nothing was lost" in text


def test_cut_launches_are_printed_also_without_a_summary(part, capsys):
    print_recorded(step_of(part), quiet=True)
    assert capsys.readouterr().err == f"collector: {CUT}\n"


def test_the_summary_has_the_cut_launches(part, capsys):
    print_recorded(step_of(part), "rank 3", quiet=False)
    assert capsys.readouterr().err == f"\nrank 3\n{summarize(part)}\n"


def test_losses_are_named_with_their_process_where_no_summary_is_printed(build, capsys):
    build.counters["records_dropped"] = 3
    recording = build.kernel("relu", 100).recording()
    print_recorded(step_of(recording), "rank 3", quiet=True)
    assert capsys.readouterr().err.startswith("collector: rank 3: incomplete: CUPTI dropped 3 records: ")


def test_processes_whose_summaries_are_left_out_are_named_if_they_are_incomplete(build, capsys):
    whole = step_of(build.kernel("relu", 100).recording())
    build.counters["records_dropped"] = 3
    lossy = step_of(build.recording())
    processes = [SimpleNamespace(name=f"rank {rank}", step=whole, ranges=()) for rank in range(6)]
    processes[5] = SimpleNamespace(name="rank 5", step=lossy, ranges=())
    _print(processes, quiet=True)
    assert capsys.readouterr().err == "collector: 1 of 2 more processes are incomplete: rank 5\n"
