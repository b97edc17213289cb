"""The views of a profile. To add a view: one module of this package with a `View` called ``VIEW``, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from collector.profiler.views import code, graph, op, scope
from collector.profiler.views.view import View

VIEWS: Mapping[str, View] = {each.name: each for each in (scope.VIEW, graph.VIEW, op.VIEW, code.VIEW)}
"""Name -> view, in the order in which texts list them."""
