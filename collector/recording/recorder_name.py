"""The program that recorded a step, where the file that was read is in the format of another program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECORDED_BY = "recorded_by"
"""The key of the environment, and of what such a file states: the ``source`` of the step that was written to it."""


def recorder_of(environment: Mapping[str, Any]) -> str:
    """The source that recorded a step: that which its file states, and else that of its file."""
    return str(environment.get(RECORDED_BY) or environment.get("source") or "")


def stated_recorder(stated: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What files state, or the inputs of a file, as part of an environment; empty where they differ."""
    names = {str(each.get(RECORDED_BY) or "") for each in stated}
    name = names.pop() if len(names) == 1 else ""
    return {RECORDED_BY: name} if name else {}
