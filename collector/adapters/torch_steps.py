"""PyTorch's optimizers, data loaders and ops as annotations."""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from collector.adapters.entered_calls import calls
from collector.adapters.installed_hooks import InstalledHooks, SharedHooks
from collector.errors import UnavailableError
from collector.tracing import nvtx
from collector.tracing.annotate import annotate, is_recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def annotate_torch_steps() -> InstalledHooks:
    """Name the work of every optimizer's ``step`` (``Adam.step``) and of fetching a batch (``DataLoader.next``).

    PyTorch calls no hook after a step that raises an error. The annotation of that step ends with the next step or
    batch of its thread that the same function or a function around it calls, and with the hooks.

    Returns:
        The hooks, which can be removed. They are those of the whole process, also if several calls install them.
    """
    return _hooks.installed()


def _install() -> list[Callable[[], object]]:
    import torch
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    is_compiling = torch.compiler.is_compiling

    def before(stepping: Any, args: Any, kwargs: Any) -> None:
        if is_compiling() or not is_recording():
            return
        frame = sys._getframe(1)
        calls.end_unfinished(frame.f_back)  # a step that raised was not left
        calls.enter(stepping, annotate(f"{type(stepping).__name__}.step"), frame)

    def after(stepping: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            calls.leave(stepping)

    iterators = dataloader._BaseDataLoaderIter
    fetch = iterators.__next__
    has_names = True

    @functools.wraps(fetch)
    def fetch_named(self: Any) -> Any:
        if is_compiling() or not has_names or not is_recording():
            return fetch(self)
        calls.end_unfinished(sys._getframe(1))
        with annotate("DataLoader.next"):
            return fetch(self)

    def put_back() -> None:
        nonlocal has_names
        has_names = False  # a later wrapper of another tool may still call this one
        if iterators.__next__ is fetch_named:
            iterators.__next__ = fetch

    iterators.__next__ = fetch_named
    return [
        lambda: calls.end_unfinished(sys._getframe(1)),
        optimizer.register_optimizer_step_pre_hook(before).remove,
        optimizer.register_optimizer_step_post_hook(after).remove,
        put_back,
    ]


_hooks = SharedHooks(_install)


@contextmanager
def annotate_torch_ops() -> Iterator[None]:
    """Name GPU work by PyTorch's ops (``aten::addmm``), through its own NVTX ranges and our handler.

    Call it before the program's first NVTX range. It costs every op a few microseconds, traced or not.

    Raises:
        collector.UnavailableError: this PyTorch was built without CUDA, and emits no ranges.
    """
    import torch

    if not torch.version.cuda:
        raise UnavailableError(
            "this PyTorch was built without CUDA, and emits no NVTX ranges", "Use adapters.annotate_modules(model)"
        )
    nvtx.arm()
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        yield
