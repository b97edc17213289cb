"""The description of a view of the profiler; see `collector.profiler.views.view_registry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.profiler.model import Model
from collector.protos import GraphNodeProto, MultiGraphNodeProto

if TYPE_CHECKING:
    from collector.profiler.profile_options import Options
    from collector.profiler.values import Variables
    from collector.profiler.views.group import GroupAnswer
    from collector.profiler.views.tree import Answer

Message = GraphNodeProto | MultiGraphNodeProto


class ModelView(Protocol):
    """A view of one model: its nodes as a tree, which answers questions until the model changes."""

    @property
    def depth(self) -> int:
        """Levels below the root."""
        ...

    def answer(self, options: Options, variables: Variables | None = None) -> Answer | GroupAnswer:
        """Accounts, filters and sorts the nodes by ``options``.

        Raises:
            collector.profiler.ViewError: the view cannot give that answer.
        """
        ...


@dataclass(frozen=True)
class View:
    """One way to look at a model."""

    name: str
    """The command that asks for it."""
    help: str
    """The line of the help on the command."""
    doc: str
    """The first line of the ``Doc:`` block of its reports."""
    of: Callable[[Model], ModelView]
    """Makes the view of a model."""
    message: Callable[[], Message]
    """Makes an empty message of its answers."""
