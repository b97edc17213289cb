"""Output for the page of a job on GitHub Actions: a summary in Markdown, and annotations.

Both follow https://docs.github.com/actions/reference/workflow-commands-for-github-actions. Anywhere else nothing is
written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from collector.text import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLES = ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS")
"""The variables that name the file of the summary, and that state whether the program runs in such a job."""
_MOST_BYTES = 1 << 20
"""GitHub refuses the summary of a step that is larger."""


def add_to_job_summary(title: str, markdown: str) -> None:
    """Add a part to the summary of the job; a line replaces a part that exceeds the size limit."""
    named = os.environ.get(VARIABLES[0])
    if not named:
        return
    path = Path(named)
    try:
        taken = path.stat().st_size if path.exists() else 0
        part = f"## {title}\n\n{markdown.rstrip()}\n\n".encode()
        if taken + len(part) > _MOST_BYTES:
            part = f"## {title}\n\nThese tables are too large for this page.\n\n".encode()
        if taken + len(part) <= _MOST_BYTES:
            with path.open("ab") as file:
                file.write(part)
    except OSError as error:
        terminal.report(
            f"the summary of the job lacks the part {title!r}: {path}, which {VARIABLES[0]} names, cannot be written: "
            f"{error.strerror or error}"
        )


def job_annotations(level: str, title: str, messages: Sequence[str]) -> list[str]:
    """Lines for standard output by which GitHub shows messages at a job; none anywhere else.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        title: the program that reports the messages.
        messages: may hold any character.
    """
    if os.environ.get(VARIABLES[1]) != "true":
        return []
    return [f"::{level} title={_property(title)}::{_data(message)}" for message in messages]


def _data(text: str) -> str:
    """A message without characters that end it."""
    return terminal.printable_lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
