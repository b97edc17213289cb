"""Files that are often handed over by mistake, told by their first bytes."""

from __future__ import annotations

FOREIGN = {
    b"SQLite format 3\0": "an SQLite database (an Nsight Systems export?)",
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
    """What a file with these first bytes is, if it is none of ours; ``""`` if that is not known."""
    return next((what for magic, what in FOREIGN.items() if head.startswith(magic)), "")
