"""Files of other programs that are often given by mistake, recognised by their first bytes or by their name."""

from __future__ import annotations

FOREIGN = {
    b"\x89PNG": "a picture",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet table",
    b"ARROW1": "an Arrow table",
    b"BZh": "a bzip2 archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\xfd7zXZ": "an xz archive",
}
"""First bytes -> what the file is."""


def foreign_kind(head: bytes) -> str:
    """The kind of a foreign file with these first bytes; ``""`` if it is not known."""
    return next((what for magic, what in FOREIGN.items() if head.startswith(magic)), "")


_REPORTS = {
    ".nsys-rep": ("a report of Nsight Systems", "Export it first: nsys export --type sqlite FILE"),
    ".qdrep": ("a report of Nsight Systems", "Export it first: nsys export --type sqlite FILE"),
    ".ncu-rep": ("a report of Nsight Compute", "It holds counters of single kernels, not a trace"),
}
"""Suffix -> what such a file is, and what to do with it."""


def report_kind(name: str) -> tuple[str, str]:
    """The kind of an unreadable file by its name, and the remedy; ``""`` twice if it is not known."""
    return next((about for suffix, about in _REPORTS.items() if name.lower().endswith(suffix)), ("", ""))
