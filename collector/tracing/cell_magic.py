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

        The session is the cell's result: ``step = _`` keeps it. A cell that raises an error has none, as without the
        magic; its file holds what was traced until then.
        """
        path = shlex.split(line)
        if len(path) > 1:
            raise ValueError(f"%%{MAGIC} takes one file, and not {len(path)}: quote a name with spaces")
        with trace(*path) as step:
            done = shell.run_cell(cell, store_history=False)
            try:
                done.raise_error()
            except BaseException as error:
                _leave_out_next_display(shell, error)
                raise
        return step

    shell.register_magic_function(traced, magic_kind="cell", magic_name=MAGIC)


def _leave_out_next_display(shell: Any, error: BaseException) -> None:
    """Keep IPython from showing an error again that it has shown for the traced code, when the whole cell raises it."""
    show = shell._showtraceback

    def show_others(kind: Any, shown: Any, lines: Any) -> None:
        shell._showtraceback = show
        if shown is not error:
            show(kind, shown, lines)

    shell._showtraceback = show_others
