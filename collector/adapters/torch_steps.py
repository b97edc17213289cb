"""PyTorch's optimizers, data loaders and ops as annotations."""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from collector.adapters.entered_calls import calls
from collector.adapters.installed_hooks import InstalledHooks
from collector.errors import UnavailableError
from collector.tracing import nvtx
from collector.tracing.annotate import annotate

if TYPE_CHECKING:
    from collections.abc import Iterator


def annotate_torch_steps() -> InstalledHooks:
    """Name the work of every optimizer's ``step`` (``Adam.step``) and of fetching a batch (``DataLoader.next``).

    Returns:
        The hooks, which can be removed. They are those of the whole process.
    """
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    def before(stepping: Any, args: Any, kwargs: Any) -> None:
        frame = sys._getframe(1)
        calls.end_unfinished(frame.f_back)  # a step that raised was not left
        calls.enter(stepping, annotate(f"{type(stepping).__name__}.step"), frame)

    def after(stepping: Any, args: Any, kwargs: Any) -> None:
        calls.leave(stepping)

    iterators = dataloader._BaseDataLoaderIter
    fetch = iterators.__next__

    @functools.wraps(fetch)
    def fetch_named(self: Any) -> Any:
        with annotate("DataLoader.next"):
            return fetch(self)

    def put_back() -> None:
        if iterators.__next__ is fetch_named:
            iterators.__next__ = fetch

    iterators.__next__ = fetch_named
    return InstalledHooks(
        [
            optimizer.register_optimizer_step_pre_hook(before).remove,
            optimizer.register_optimizer_step_post_hook(after).remove,
            put_back,
        ]
    )


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
