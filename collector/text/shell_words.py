"""Names of files as words of shell commands that messages and pages suggest."""

from __future__ import annotations

import shlex


def file_argument(name: str) -> str:
    """A file's name as an argument of a shell command, quoted so that it is taken as nothing else.

    >>> file_argument("my run.pb"), file_argument("-o"), file_argument("step.pb")
    ("'my run.pb'", './-o', 'step.pb')
    """
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
