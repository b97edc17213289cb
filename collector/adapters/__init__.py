"""Names from frameworks, by one added line in the program.

>>> from collector import adapters
>>> adapters.annotate_modules(model)
>>> adapters.annotate_torch_steps()

Each function installs hooks in its framework and returns an object whose `remove` removes them; the object is also a
context manager. The hooks cost almost nothing while nothing is traced. Importing this package imports no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.runtime.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from collector.adapters.keras_steps import keras_names
    from collector.adapters.torch_graphs import name_torch_graphs
    from collector.adapters.torch_memory import record_torch_memory
    from collector.adapters.torch_modules import annotate_all_modules, annotate_modules
    from collector.adapters.torch_steps import annotate_torch_ops, annotate_torch_steps
    from collector.adapters.triton_launches import annotate_triton_launches

__all__ = [
    "annotate_all_modules",
    "annotate_modules",
    "annotate_torch_ops",
    "annotate_torch_steps",
    "annotate_triton_launches",
    "keras_names",
    "name_torch_graphs",
    "record_torch_memory",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "annotate_all_modules": "collector.adapters.torch_modules",
        "annotate_modules": "collector.adapters.torch_modules",
        "annotate_torch_ops": "collector.adapters.torch_steps",
        "annotate_torch_steps": "collector.adapters.torch_steps",
        "annotate_triton_launches": "collector.adapters.triton_launches",
        "keras_names": "collector.adapters.keras_steps",
        "name_torch_graphs": "collector.adapters.torch_graphs",
        "record_torch_memory": "collector.adapters.torch_memory",
    },
)
