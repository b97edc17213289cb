"""Names of the CUDA graphs that PyTorch captures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from collector.adapters.installed_hooks import InstalledHooks
from collector.errors import UnavailableError
from collector.tracing.graph_names import name_graph

if TYPE_CHECKING:
    from collections.abc import Callable


def name_torch_graphs(name: Callable[[Any], str] | None = None) -> InstalledHooks:
    """Name the launches of each CUDA graph that PyTorch instantiates while a trace is open.

    Args:
        name: returns the name of a ``torch.cuda.CUDAGraph``; by default it is the function that captured the graph, as
            ``capture_decoder (model.py:41)``.

    Returns:
        The hooks, which can be removed. They are those of the whole process.

    Raises:
        collector.UnavailableError: this PyTorch has no hooks of graphs.
    """
    from torch.cuda import graphs

    from collector import _native

    register_capture = getattr(graphs, "register_graph_capture_start_hook", None)
    register_instantiate = getattr(graphs, "register_graph_instantiate_hook", None)
    if register_capture is None or register_instantiate is None:
        raise UnavailableError(
            "this PyTorch has no hooks of CUDA graphs",
            "Use a newer one (torch.cuda.graphs.register_graph_instantiate_hook), or capture each graph inside "
            "collector.annotate(), whose name its launches then have",
        )

    captured_by: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def begin(graph: Any) -> None:
        _native.take_instantiated_graph()  # another library's
        if name is None:
            captured_by[graph] = _capturing_function()  # it may be instantiated elsewhere

    def note(graph: Any) -> None:
        graph_id = _native.take_instantiated_graph()
        if graph_id:
            name_graph(graph_id, str(name(graph)) if name else captured_by.get(graph) or _capturing_function())

    return InstalledHooks([register_capture(begin).remove, register_instantiate(note).remove])


def _capturing_function() -> str:
    """The function in the innermost frame that is not PyTorch's or this module's."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("torch", "collector"):
        frame = frame.f_back
    return f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"
