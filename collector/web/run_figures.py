"""A few figures of a run, with which a list of runs shows their development."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.analysis.busy_time import devices
from collector.analysis.idle import CAUSE_NAMES, idle, largest_causes
from collector.formats.step import Step
from collector.recording.device_models import device_models
from collector.recording.run_label import RunLabel

if TYPE_CHECKING:
    from collector.formats.step import TracedStep


def run_figures(step: TracedStep) -> dict[str, Any]:
    """Length, busy share, kernels, models of GPUs, the main cause of idle time, and whether anything was lost."""
    recording = step.recording
    times, gaps = devices(step), idle(step)
    window_ns = times.totals.get("window_ns", 0)
    causes = largest_causes(gaps)
    return {
        "length_ns": recording.clock.window_ns,
        "busy_ns": times.totals.get("busy_ns", 0),
        "busy_share": times.totals["busy_ns"] / window_ns if window_ns else None,
        "kernels": len(recording.kernels),
        "gpu": ", ".join(sorted(set(device_models(recording).values()))),
        "cause": CAUSE_NAMES[causes[0][0]] if causes else "",
        "losses": len(recording.ledger.losses()),
        "simulated": bool(recording.environment.get("simulated")),
        **RunLabel.of(recording)._asdict(),
        "rank": step.rank if isinstance(step, Step) else None,
        "unavailable": step.unavailable,
    }
