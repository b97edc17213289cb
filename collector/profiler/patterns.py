r"""Regular expressions of tfprof's options: a list, of which one must match the whole name.

tfprof uses RE2, this module Python's ``re``. The differences: RE2 has no look-around and no back-references (here they
work), and accepts ``\C``, ``\Q...\E``, ``\pN`` and ``(?P>name)``, which ``re`` rejects.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

log = logging.getLogger("collector.profiler")

ANYTHING = ".*"


class Patterns:
    """Full matches of any of several regular expressions. None matches nothing; ``[".*"]`` matches everything.

    An invalid expression matches nothing and is logged once, as in tfprof; ``broken`` lists invalid expressions for
    callers that report them as errors, and that have them not logged.
    """

    def __init__(self, expressions: Iterable[str], *, is_logged: bool = True) -> None:
        self.expressions = tuple(expressions)
        self.everything = self.expressions == (ANYTHING,)
        """Whether it is the default list, which also matches nodes without any text to match."""
        self.broken: list[str] = []
        """``expression: reason`` of the invalid expressions."""
        self._compiled = []
        for expression in self.expressions:
            try:
                self._compiled.append(re.compile(expression))
            except re.error as error:
                self.broken.append(f"{expression!r}: {error}")
                if is_logged:
                    log.error("not a regular expression: %r: %s", expression, error)
        self._known: dict[str, bool] = {}

    def match(self, name: str) -> bool:
        """Whether one expression matches all of ``name``."""
        if self.everything or not self._compiled:
            return self.everything
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = any(pattern.fullmatch(name) for pattern in self._compiled)
        return known

    def count(self, names: Iterable[str]) -> int:
        """The number of expressions that fully match at least one of ``names``."""
        return sum(1 for pattern in self._compiled if any(map(pattern.fullmatch, names)))
