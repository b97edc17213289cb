"""``%load_ext collector`` in a notebook: the magic ``%%collector`` traces its cell and shows the step at a glance."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from collector.tracing.trace import trace

if TYPE_CHECKING:
    from collector.tracing.session import Session

MAGIC = "collector"


def load_ipython_extension(shell: Any) -> None:
    """Register the magic; IPython calls this for ``%load_ext collector``."""

    def traced(line: str, cell: str) -> Session:
        """Trace this cell; ``%%collector step.pb`` also saves it.

        The session is the cell's result: ``step = _`` keeps it.
        """
        path = shlex.split(line)
        if len(path) > 1:
            raise ValueError(f"%%{MAGIC} takes one file, and not {len(path)}: quote a name with spaces")
        with trace(*path) as step:
            shell.run_cell(cell, store_history=False)
        return step

    shell.register_magic_function(traced, magic_kind="cell", magic_name=MAGIC)
