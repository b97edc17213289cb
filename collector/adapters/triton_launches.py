"""Launches of Triton's kernels as annotations with the floating-point operations and bytes that their code states."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from collector.adapters.installed_hooks import InstalledHooks, SharedHooks
from collector.tracing.annotate import annotate, is_recording

if TYPE_CHECKING:
    from collections.abc import Callable

_LIMIT = 2**63


def annotate_triton_launches() -> InstalledHooks:
    """Name each launch by its kernel, with ``flops`` and ``bytes`` of ``@triton.jit(launch_metadata=...)``.

    The function ``launch_metadata`` is called only for launches in a trace. In its result, ``flops`` and numbers such
    as ``flops8`` and ``flops16`` are added up, and ``bytes`` is used as it is.

    Returns:
        The hooks, which can be removed. They are those of the whole process, also if several calls install them.
    """
    return _hooks.installed()


def _install() -> list[Callable[[], object]]:
    from triton import knobs

    hooks = _LaunchHooks()
    runtime = knobs.runtime
    runtime.launch_enter_hook.add(hooks.enter)
    runtime.launch_exit_hook.add(hooks.leave)
    return [
        lambda: runtime.launch_enter_hook.remove(hooks.enter),
        lambda: runtime.launch_exit_hook.remove(hooks.leave),
    ]


_hooks = SharedHooks(_install)


class _LaunchHooks:
    def __init__(self) -> None:
        self._threads = threading.local()

    def enter(self, metadata: Any) -> None:
        """A kernel is about to be launched."""
        self.leave(metadata)  # a launch that raised was not left
        if is_recording():
            self._threads.open = _annotation_of(metadata.get())
            self._threads.open.__enter__()

    def leave(self, metadata: Any) -> None:
        """The kernel was launched."""
        annotation = self._threads.__dict__.pop("open", None)
        if annotation is not None:
            annotation.__exit__(None, None, None)


def _annotation_of(stated: dict[str, Any]) -> annotate:
    name = stated.get("name")
    if not isinstance(name, str) or not name.strip("/ "):
        name = "triton kernel"
    flops = [number for key, given in stated.items() if key.startswith("flops") and (number := _number(given))]
    num_flops, num_bytes = _number(sum(flops)), _number(stated.get("bytes"))
    if num_flops is None and num_bytes is None:
        return annotate(name)  # the usual case, and the faster one
    return annotate(name, flops=num_flops, bytes=num_bytes)


def _number(given: Any) -> float | None:
    """``given`` if an annotation can have it as a count; None: it is not a number, or not positive, or too large."""
    is_usable = isinstance(given, (int, float)) and not isinstance(given, bool) and 0 < given < _LIMIT
    return given if is_usable else None
