"""The ranges to which ``collector run --capture-range`` restricts a recording, as ``native/capture/capture_ranges.h``.

>>> CaptureRange.of("nvtx:train@my_library").domain
'my_library'
>>> CaptureRange.of("cudaProfilerApi").opening
'a call of cudaProfilerStart'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PROFILER = "cudaProfilerApi"
_NVTX = "nvtx:"
_ANY = "*"
_PLAIN_AT = re.compile(r"(?<!\\)@")


@dataclass(frozen=True)
class CaptureRange:
    """The events that open a range: calls of the profiler's API, or NVTX ranges of one name."""

    text: str
    """The text of the option, which the recorded program reads as well."""
    name: str = ""
    """The name of the NVTX ranges; empty: calls of the profiler's API."""
    domain: str = ""
    """The domain of the NVTX ranges; empty: the default domain, ``*``: any domain."""
    most: int = 0
    """The number of ranges that are recorded in each process; 0: all."""

    @classmethod
    def of(cls, text: str, most: int = 0) -> CaptureRange:
        r"""Read ``cudaProfilerApi``, ``nvtx:NAME``, ``nvtx:NAME@DOMAIN`` or ``nvtx:NAME@*``; ``\@`` is part of a name.

        Raises:
            ValueError: the text has none of these forms.
        """
        if text == PROFILER:
            return cls(text, most=most)
        found = re.split(_PLAIN_AT, text.removeprefix(_NVTX), maxsplit=1)
        name, domain = (part.replace(r"\@", "@") for part in (*found, "")[:2])
        if not text.startswith(_NVTX) or not name:
            raise ValueError(f"{text!r} names no range: give {PROFILER}, {_NVTX}NAME or {_NVTX}NAME@DOMAIN")
        if "," in domain:
            raise ValueError(f"the domain {domain!r} cannot be named: it has a comma")
        return cls(text, name, domain, most)

    @property
    def nvtx_domains(self) -> tuple[str, ...]:
        """The domains whose ranges must reach the handler, as in ``--nvtx-domains``; empty: all domains."""
        return () if self.domain == _ANY else (self.domain or "default",)

    @property
    def opening(self) -> str:
        """The action of the program that opens a range."""
        if not self.name:
            return "a call of cudaProfilerStart"
        domains = {"": "the default domain", _ANY: "any domain"}
        return f"an NVTX range {self.name!r} in {domains.get(self.domain, f'the domain {self.domain!r}')}"


def most_ranges(text: str) -> int:
    """The number in ``--capture-range-end``: ``stop`` is 1, ``repeat:N`` is N, ``repeat`` is 0, which is all.

    Raises:
        ValueError: the text has none of these forms.
    """
    if text == "stop":
        return 1
    word, colon, number = text.partition(":")
    if word != "repeat" or (colon and not re.fullmatch("[1-9][0-9]{0,8}", number)):
        raise ValueError(f"{text!r} is not an end of ranges: give stop, repeat or repeat:N")
    return int(number or 0)
