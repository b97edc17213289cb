"""Compares a test's step with its snapshot, or writes the snapshot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from collector.errors import OutputError
from collector.testing.plugin import snapshots
from collector.testing.plugin.artifacts import safe_name
from collector.testing.plugin.outcomes import fail
from collector.text.node_ids import node_id

if TYPE_CHECKING:
    import pytest

    from collector.testing.plugin.running_test import Running
    from collector.testing.plugin.traced_step import Step


def match_snapshot(running: Running, step: Step, name: str | None, *, update: bool) -> None:
    """Fail the test if ``step`` differs from its snapshot; see `Step.assert_matches_snapshot`.

    Args:
        running: the test.
        step: one of its steps.
        name: the snapshot's name within the test; None: the test's own name, numbered from its second snapshot on.
        update: write the snapshot instead.
    """
    __tracebackhide__ = True
    item = running.item
    running.snapshots += 1
    plain = name or ("" if running.snapshots == 1 else str(running.snapshots))
    file = snapshot_file(item, plain)
    path = item.path.parent / snapshots.FOLDER / item.path.stem / file
    shown = os.path.relpath(path, item.config.invocation_params.dir)
    if step.ledger.record_losses():
        fail(
            "a lossy trace is neither compared with a snapshot nor written to one; see the test's teardown",
            pytrace=True,
        )
    now = snapshots.snapshot_of(step.recording)
    problem, golden = "", now
    try:
        if update and file not in running.snapshots_written:
            running.snapshots_written.add(file)
            snapshots.save_snapshot(now, path)
            running.note("remarks", "snapshots were written, not compared")
        else:
            golden = snapshots.load_snapshot(path)
    except (snapshots.SnapshotError, OutputError) as error:
        problem = str(error).replace(str(path), shown)
    except OSError as error:
        problem = f"the snapshot {shown} cannot be written: {error.strerror or error}"
    if problem:  # raised here, so that the traceback shows only the message
        fail(problem, pytrace=True)
    difference, remark = snapshots.compare(golden, now)
    if remark:
        running.note("remarks", remark)
    if difference:
        head = f"the step does not match its snapshot {shown}" + (f"\n{remark}" if remark else "")
        remedy = "--gpu-snapshot-update accepts this run"
        if update:
            remedy = "the test has written this snapshot from another step: give each step a name of its own"
        fail(f"{head}\n{difference}\n{remedy}", pytrace=True)


def snapshot_file(item: pytest.Item, name: str) -> str:
    """The name of the file of a test's snapshot ``name``; empty: of its first one without a name."""
    test = node_id(item).partition("::")[2] or item.name
    return f"{safe_name(f'{test}--{name}' if name else test)}.json"
