"""Packages whose public names are imported at their first use."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def names_on_demand(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        places: public name -> the module that is imported at the name's first use.
    """
    module = sys.modules[package]

    def value_of(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *places})

    return value_of, names
