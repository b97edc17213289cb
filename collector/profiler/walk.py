"""Depth-first walks without recursion: a chain of a million nodes must not overflow the stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def fold(
    roots: Iterable[T],
    enter: Callable[[T, int, int], tuple[Iterable[T], int] | None],
    leave: Callable[[T, list[T], int], Iterable[T]],
) -> list[T]:
    """Visits nodes on the way down and on the way up. Roots have the depth 1 and the indent 0.

    Args:
        roots: the nodes to start from.
        enter: called with a node, its depth and its indent, returns the children to visit and their indent; None skips
            the node and everything below it.
        leave: called with a node, the results of its children and its own indent, returns the result of the node.

    Returns:
        The results of the roots.
    """
    top: list[T] = []
    stack: list[tuple[T | None, Iterable[T], list[T], int, int]] = [(None, iter(roots), top, 0, 0)]
    while stack:
        node, pending, gathered, own_indent, below = stack[-1]
        for child in pending:
            entered = enter(child, len(stack), below)
            if entered is not None:
                children, indent = entered
                stack.append((child, iter(children), [], below, indent))
                break
        else:
            stack.pop()
            if node is not None:
                stack[-1][2].extend(leave(node, gathered, own_indent))
    return top
