r"""Regular expressions as tfprof's options use them: a list, of which one must match the whole name.

tfprof uses RE2, this uses Python's ``re``. Both agree on everything but: RE2 has no look-around and no back-references
(here they work), and reads ``\C``, ``\Q...\E``, ``\pN`` and ``(?P>name)`` which ``re`` rejects.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

log = logging.getLogger("collector.profiler")

ANYTHING = ".*"


class Patterns:
    """Full matches against any of some regular expressions. Empty matches nothing; ``[".*"]`` matches everything.

    An expression that does not compile matches nothing and is logged once, as in tfprof; ``broken`` lists them for
    callers who would rather stop.
    """

    def __init__(self, expressions: Iterable[str]) -> None:
        self.expressions = tuple(expressions)
        self.everything = self.expressions == (ANYTHING,)
        """Exactly the default list: also matches what has nothing to match against."""
        self.broken: list[str] = []
        """``expression: reason`` of those that do not compile."""
        self._compiled = []
        for expression in self.expressions:
            try:
                self._compiled.append(re.compile(expression))
            except re.error as error:
                self.broken.append(f"{expression!r}: {error}")
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
        """The number of expressions that match all of one of ``names``."""
        return sum(1 for pattern in self._compiled if any(map(pattern.fullmatch, names)))
