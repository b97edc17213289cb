"""The paths of PyTorch's modules as annotations of their forward and backward passes.

PyTorch calls the hooks of all modules, and these look for the name of the module. Nothing is kept in the modules
themselves, so that they are saved, scripted, copied and compiled as without names.
"""

from __future__ import annotations

import bisect
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from collector.adapters.entered_calls import calls
from collector.adapters.installed_hooks import InstalledHooks
from collector.tracing.annotate import annotate, is_recording

if TYPE_CHECKING:
    import torch


def annotate_modules(model: torch.nn.Module, *, name: str | None = None, backward: bool = True) -> InstalledHooks:
    """Name the GPU work of each module of ``model`` by its path: ``Net/encoder/layers/0/attention``.

    The work of a module's backward pass is named by the same path with ``/backward``, also where autograd runs it in a
    thread of its own. Code that ``torch.compile`` compiles contains no annotations, so that a traced step runs the same
    program as any other step; the object that ``torch.compile`` returns has a name as a whole. So has a module of
    TorchScript. The names are those of these module objects and of their replicas in ``torch.nn.DataParallel``: a copy
    of the model has none. A module that is named again has the newer name until that is removed.

    Args:
        model: the model, or the object that wraps it or that ``torch.compile`` returned for it.
        name: the name of the model itself; by default the name of its class.
        backward: name the backward pass, too. This visits the nodes of the model's autograd graph once for each
            forward pass that is traced.

    Returns:
        The hooks, which can be removed. They are those of the whole process.
    """
    names = _Names(backward=backward)
    _give(names, model, name or _class_name(model))
    return _hooks.installed_for(names)


def annotate_all_modules() -> InstalledHooks:
    """Name the GPU work of every module that the program calls, as `annotate_modules` does for one model.

    A module that has no name yet when it is called counts as a model: from this call on all modules in it are named,
    except those that `annotate_modules` has named. This is for programs that are not to be changed:
    ``collector run --python``.

    Returns:
        The hooks, which can be removed. They are those of the whole process.
    """
    return _hooks.installed_for(_Names(of_all=True))


@dataclass(frozen=True, eq=False)
class _Names:
    """The names that one call gives."""

    backward: bool = True
    of_all: bool = False
    """Whether every module that is called gets one."""


class _Name(NamedTuple):
    """The name of one module."""

    names: _Names
    """The names of the call that gave this one."""
    annotation: annotate
    path: str
    """The whole path from the model on."""


_given: WeakKeyDictionary[torch.nn.Module, tuple[_Name, ...]] = WeakKeyDictionary()
"""Module -> its names, of which the last one counts."""
_originals: dict[int, ref[torch.nn.Module]] = {}
"""Id of the own hooks of a module with names, which its replicas share -> the module."""


def _names_of(module: torch.nn.Module) -> tuple[_Name, ...]:
    """The names of a module; replicas, which ``DataParallel`` makes anew at each call, have those of their original."""
    given = _given.get(module, ())
    if given or not vars(module).get("_is_replica"):
        return given
    reference = _originals.get(id(module._forward_pre_hooks))
    original = None if reference is None else reference()
    return () if original is None else _given.get(original, ())


def _give(names: _Names, model: torch.nn.Module, root: str) -> None:
    """Name all modules of a model."""
    import torch

    modules = dict(model.named_modules())
    scripts = [path for path, module in modules.items() if isinstance(module, torch.jit.ScriptModule)]
    inside = tuple(f"{path}." if path else "" for path in scripts)  # their modules are called by TorchScript alone
    for path, module in modules.items():
        if not _is_called(module) or (path and path.startswith(inside)):
            continue
        outer = path
        while outer:  # the nearest module around it that is called; its annotation is open then
            outer = outer.rpartition(".")[0]
            if _is_called(modules[outer]):
                break
        local = path[len(outer) :].lstrip(".").replace(".", "/") if path else root
        name = _Name(names, annotate(local), f"{root}/{path.replace('.', '/')}" if path else root)
        others = _without(names, module)
        _given[module] = (name, *others) if names.of_all else (*others, name)
        key = id(module._forward_pre_hooks)
        _originals[key] = ref(module, partial(_forget_original, key))


def _forget_original(key: int, reference: ref[torch.nn.Module]) -> None:
    if _originals.get(key) is reference:
        del _originals[key]


def _take_back(names: _Names) -> None:
    for reference in _given.keyrefs():
        module = reference()
        if module is None:
            continue
        others = _without(names, module)
        if others:
            _given[module] = others
        else:
            _given.pop(module, None)


def _without(names: _Names, module: torch.nn.Module) -> tuple[_Name, ...]:
    """The names of a module besides the one that is among these."""
    return tuple(each for each in _given.get(module, ()) if each.names is not names)


def _is_called(module: torch.nn.Module) -> bool:
    """Whether it has a forward pass; a container has none. That of what `torch.compile` returns is the object's own."""
    import torch

    return (
        isinstance(module, torch.jit.ScriptModule)  # its class cannot be asked
        or type(module).forward is not torch.nn.Module.forward
        or "forward" in vars(module)
    )


def _class_name(model: torch.nn.Module) -> str:
    """The name of the model's class, also of a compiled model or one of TorchScript."""
    import torch

    if isinstance(model, torch.jit.ScriptModule):
        return str(model.original_name)
    return type(getattr(model, "_orig_mod", model)).__name__


class _Hooks:
    """The hooks of all modules, which PyTorch has as long as there are names.

    They raise no error: a module whose name cannot be found has none. In code that ``torch.compile`` reads they return
    before they do anything that it would have to compile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        """The calls whose names are not removed."""
        self._of_all: list[_Names] = []
        """Their names for every module that is called; the first ones are given."""
        self._remove: list[Callable[[], object]] = []

    def installed_for(self, names: _Names) -> InstalledHooks:
        """Install them, if that was not done for other names."""
        with self._lock:
            if not self._remove:
                self._remove = self._install()
            self._calls += 1
            if names.of_all:
                self._of_all.append(names)

        def remove() -> None:
            with self._lock:
                self._calls -= 1
                if names.of_all:
                    self._of_all.remove(names)
                while self._remove and not self._calls:
                    self._remove.pop()()
            _take_back(names)

        return InstalledHooks([remove])

    def _install(self) -> list[Callable[[], object]]:
        import torch
        from torch.nn.modules import module as modules

        is_compiling, graph = torch.compiler.is_compiling, _BackwardNames()

        def before(module: torch.nn.Module, inputs: Any) -> None:
            if is_compiling() or not is_recording():
                return
            try:
                given = _names_of(module) or self._named_now(module)
                frame = sys._getframe(1)
                calls.end_unfinished(frame.f_back)
                if given:
                    name = given[-1]
                    if name.names.backward:
                        graph.enter(name.path)
                    at_end = partial(graph.leave, name.path) if name.names.backward else None
                    calls.enter(module, name.annotation, frame, at_end)
            except Exception:  # of code of the module itself, such as its __eq__ or __getattr__
                return

        def after(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            if not is_compiling():
                calls.leave(module, output)

        return [
            _ignore_warning_of_hooks(),
            modules.register_module_forward_pre_hook(before).remove,
            modules.register_module_forward_hook(after, always_call=True).remove,
        ]

    def _named_now(self, module: torch.nn.Module) -> tuple[_Name, ...]:
        """The names of a module that had none, where all modules get one."""
        if not self._of_all:
            return ()
        _give(self._of_all[0], module, _class_name(module))
        return _given[module]


def _ignore_warning_of_hooks() -> Callable[[], None]:
    """Filter PyTorch's warning that hooks are called for a compiled object, too; return what removes the filter.

    Our hooks give the object a name.
    """
    text = r"Using `torch\.compile\(module\)` when there are global hooks"
    warnings.filterwarnings("ignore", text, UserWarning)
    added = warnings.filters[0]

    def remove() -> None:
        with suppress(ValueError):  # the program has reset the filters
            warnings.filters.remove(added)  # type: ignore[attr-defined]  # a list, in all versions

    return remove


class _BackwardNames:
    """Gives the nodes of a forward pass's graph hooks that name what they launch.

    Autograd numbers the nodes of a thread as they are made. The numbers at which a module begins and ends tell which
    module made a node.
    """

    def __init__(self) -> None:
        from torch.autograd import _get_sequence_nr

        self._next_number = _get_sequence_nr
        self._passes = threading.local()
        self._annotations: dict[tuple[str, str], annotate] = {}

    def enter(self, path: str) -> None:
        """A module begins."""
        passes = self._passes.__dict__
        open_paths = passes.setdefault("open", [])
        if not open_paths:
            passes["numbers"], passes["paths"] = [], []
        open_paths.append(path)
        passes["numbers"].append(self._next_number())
        passes["paths"].append(path)

    def leave(self, path: str, output: Any) -> None:
        """A module ends."""
        passes = self._passes.__dict__
        open_paths = passes.get("open", [])
        if path not in open_paths:
            return  # it began before the trace
        while open_paths.pop() != path:
            pass
        passes["numbers"].append(self._next_number())
        passes["paths"].append(open_paths[-1] if open_paths else "")
        if not open_paths:
            with suppress(Exception):  # of the classes of the output; nodes that it does not show have no names
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


_hooks = _Hooks()
