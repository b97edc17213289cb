"""The paths of PyTorch's modules as annotations of their forward and backward passes."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from collector.adapters.installed_hooks import InstalledHooks
from collector.tracing.annotate import annotate, is_recording

if TYPE_CHECKING:
    import torch


def annotate_modules(model: torch.nn.Module, *, name: str | None = None, backward: bool = True) -> InstalledHooks:
    """Name the GPU work of each module of ``model`` by its path: ``Net/encoder/layers/0/attention``.

    The work of a module's backward pass is named by the same path with ``/backward``, also where autograd runs it in a
    thread of its own. Code that ``torch.compile`` compiles contains no annotations, so that a traced step runs the same
    program as any other step; the object that ``torch.compile`` returns has a name as a whole.

    Args:
        model: the model, or the object that wraps it or that ``torch.compile`` returned for it.
        name: of the model itself; by default the name of its class.
        backward: name the backward pass, too. This visits the nodes of the model's autograd graph once for each
            forward pass that is traced.

    Returns:
        The hooks, which can be removed.
    """
    return InstalledHooks(_name_modules(model, name or _class_name(model), _BackwardNames() if backward else None)[0])


def annotate_all_modules() -> InstalledHooks:
    """Name the GPU work of every module that the program calls, as `annotate_modules` does for one model.

    A module that has no name yet when it is called counts as a model: from this call on all modules in it are named.
    This is for programs that are not to be changed: ``collector run --python``.

    Returns:
        The hooks, which can be removed.
    """
    from torch.nn.modules.module import register_module_forward_pre_hook

    graph, installed = _BackwardNames(), list[Callable[[], object]]()

    def before(module: torch.nn.Module, inputs: Any) -> None:
        if _has_name(module) or not is_recording():
            return
        removals, own = _name_modules(module, _class_name(module), graph)
        installed.extend(removals)
        if own is not None:
            own.before(module, inputs)  # its own hooks are called from the next call on; its end is seen in this one

    def remove() -> None:
        while installed:
            installed.pop()()

    installed.append(register_module_forward_pre_hook(before).remove)
    return InstalledHooks([remove])


def _has_name(module: torch.nn.Module) -> bool:
    """Whether it has hooks of ours, also as the copy of a module."""
    return any(isinstance(getattr(hook, "__self__", None), _ModuleHooks) for hook in module._forward_pre_hooks.values())


def _name_modules(
    model: torch.nn.Module, root: str, graph: _BackwardNames | None
) -> tuple[list[Callable[[], object]], _ModuleHooks | None]:
    """Name all modules of a model; return what takes the hooks away, and the hooks of the model itself."""
    names = dict(model.named_modules())
    removals: list[Callable[[], object]] = []
    own = None
    for path, module in names.items():
        if not _is_called(module):
            continue
        outer = path
        while outer:  # the nearest module around it that is called; its annotation is open then
            outer = outer.rpartition(".")[0]
            if _is_called(names[outer]):
                break
        local = path[len(outer) :].lstrip(".").replace(".", "/") if path else root
        hooks = _ModuleHooks(annotate(local), f"{root}/{path.replace('.', '/')}" if path else root, graph)
        own = hooks if module is model else own
        removals += [
            module.register_forward_pre_hook(hooks.before).remove,
            module.register_forward_hook(hooks.after, always_call=True).remove,
        ]
    return removals, own


def _is_called(module: torch.nn.Module) -> bool:
    """Whether it has a forward pass; a container has none. That of what `torch.compile` returns is the object's own."""
    import torch

    return type(module).forward is not torch.nn.Module.forward or "forward" in vars(module)


def _class_name(model: torch.nn.Module) -> str:
    """The name of the model's class, also of a compiled model."""
    return type(getattr(model, "_orig_mod", model)).__name__


class _ModuleHooks:
    """The hooks of one module."""

    def __init__(self, annotation: annotate, path: str, graph: _BackwardNames | None) -> None:
        import torch

        self._is_compiling = torch.compiler.is_compiling
        self._annotation = annotation
        self._path = path
        self._graph = graph

    def before(self, module: Any, inputs: Any) -> None:
        """Enter the module."""
        if self._is_compiling() or not is_recording():
            return
        if self._graph is not None:
            self._graph.enter(self._path)
        self._annotation.__enter__()

    def after(self, module: Any, inputs: Any, output: Any) -> None:
        """Leave the module, whether it returned or raised."""
        if self._is_compiling():
            return
        self._annotation.__exit__(None, None, None)
        if self._graph is not None:
            self._graph.leave(self._path, output)

    def __deepcopy__(self, memo: dict[int, Any]) -> _ModuleHooks:
        return self  # a copy of the model has the same names

    def __reduce__(self) -> tuple[Any, ...]:
        return _ModuleHooks, (annotate(self._annotation.name), self._path, self._graph)


class _BackwardNames:
    """Gives the nodes of a forward pass's graph hooks that name what they launch.

    Autograd numbers the nodes of a thread as they are made. The numbers at which a module begins and ends tell which
    module made a node.
    """

    def __init__(self) -> None:
        self._passes = threading.local()
        self._annotations: dict[tuple[str, str], annotate] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _BackwardNames, ()  # the hooks of a model that is saved and loaded share one

    def enter(self, path: str) -> None:
        """A module begins."""
        from torch.autograd import _get_sequence_nr

        passes = self._passes.__dict__
        open_paths = passes.setdefault("open", [])
        if not open_paths:
            passes["numbers"], passes["paths"] = [], []
        open_paths.append(path)
        passes["numbers"].append(_get_sequence_nr())
        passes["paths"].append(path)

    def leave(self, path: str, output: Any) -> None:
        """A module ends."""
        from torch.autograd import _get_sequence_nr

        passes = self._passes.__dict__
        open_paths = passes.get("open", [])
        if path not in open_paths:
            return  # it began before the trace
        while open_paths.pop() != path:
            pass
        passes["numbers"].append(_get_sequence_nr())
        passes["paths"].append(open_paths[-1] if open_paths else "")
        if not open_paths:
            self._name_nodes(output, passes["numbers"], passes["paths"])

    def _name_nodes(self, output: Any, numbers: list[int], paths: list[str]) -> None:
        import torch
        from torch.utils import _pytree

        leaves = _pytree.tree_leaves(output)
        waiting = [leaf.grad_fn for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            number = node._sequence_nr()
            if numbers[0] <= number < numbers[-1]:
                path = paths[bisect.bisect_right(numbers, number) - 1]
                annotation = self._annotation(path, node.name())
                node.register_prehook(_Enter(annotation))
                node.register_hook(_Leave(annotation))
                inner = [each for each, _ in node.next_functions if each is not None and each not in seen]
                seen.update(inner)
                waiting += inner

    def _annotation(self, path: str, op: str) -> annotate:
        found = self._annotations.get((path, op))
        if found is None:
            found = self._annotations[path, op] = annotate(f"{path}/backward", op=op)
        return found


class _Enter:
    """Called before a node of the graph runs."""

    __slots__ = ("_annotation",)

    def __init__(self, annotation: annotate) -> None:
        self._annotation = annotation

    def __call__(self, gradients: Any) -> None:
        self._annotation.__enter__()


class _Leave:
    """Called after a node of the graph ran."""

    __slots__ = ("_annotation",)

    def __init__(self, annotation: annotate) -> None:
        self._annotation = annotation

    def __call__(self, inputs: Any, outputs: Any) -> None:
        self._annotation.__exit__(None, None, None)
