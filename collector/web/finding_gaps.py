"""The longest gap of each finding about idle time, which the page leads to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.idle import idle_gaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.analysis.answer import Answer
    from collector.recording.recording import Recording

_DEVICE = re.compile(r"gpu:(\d+)")


def with_gaps(findings: Sequence[Mapping[str, Any]], recording: Recording) -> list[dict[str, Any]]:
    """Findings with ``gap``: begin and end of the gap of the finding's device with the most time of its cause.

    Times are ns since the step began. None: the finding is not about gaps, or no gap has its cause.

    Args:
        findings: the result of `collector.web.report_data.findings_of`.
        recording: the whole step.
    """
    if not any(each["cause"] for each in findings):
        return [{**each, "gap": None} for each in findings]
    gaps = idle_gaps(recording)
    return [{**each, "gap": _gap(each, gaps)} for each in findings]


def _gap(finding: Mapping[str, Any], gaps: Answer) -> tuple[int, int] | None:
    if not finding["cause"]:
        return None
    device = _DEVICE.search(finding["line"])
    spent = gaps[f"{finding['cause']}_ns"]
    if device:
        spent = np.where(gaps["device_id"] == int(device[1]), spent, 0)
    if not spent.any():
        return None
    row = int(spent.argmax())
    return int(gaps["start_ns"][row]), int(gaps["end_ns"][row])
