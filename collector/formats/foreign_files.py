"""Files of other programs that are often given by mistake, recognised by their first bytes or by their name."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PARQUET = b"PAR1"
_POINTER = b"version https://git-lfs.github.com/spec/"
"""The first bytes of the file that Git leaves in the place of one that it has not fetched."""
_TAR, _TAR_AT = (b"ustar\0", b"ustar "), 257
"""The bytes by which a tar archive is known, by POSIX or as GNU's, and their place in it."""
FOREIGN = {
    b"\x89PNG": "a picture",
    b"\x7fELF": "a program",
    _PARQUET: "a Parquet table",
    b"ARROW1": "an Arrow table",
    b"BZh": "a bzip2 archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\xfd7zXZ": "an xz archive",
}
"""First bytes -> what the file is."""


def foreign_kind(head: bytes) -> tuple[str, str]:
    """The kind of a foreign file with these first bytes, and the remedy if there is one; ``""`` if it is not known."""
    if head.startswith(_POINTER):
        return "a pointer of Git LFS", "Fetch the file for which it stands: git lfs pull"
    if head.startswith(_TAR, _TAR_AT):
        return "a tar archive", "Unpack it, and give a file in it"
    return next((what for magic, what in FOREIGN.items() if head.startswith(magic)), ""), ""


_REPORTS = {
    ".nsys-rep": ("a report of Nsight Systems", "Export it first: nsys export --type sqlite FILE"),
    ".qdrep": ("a report of Nsight Systems", "Export it first: nsys export --type sqlite FILE"),
    ".ncu-rep": ("a report of Nsight Compute", "It holds counters of single kernels, not a trace"),
}
"""Suffix -> the kind of the file, and the remedy."""


def report_kind(name: str) -> tuple[str, str]:
    """The kind of an unreadable file by its name, and the remedy; ``""`` twice if it is not known."""
    return next((about for suffix, about in _REPORTS.items() if name.lower().endswith(suffix)), ("", ""))


_RECIPES = {b"Projected Start": "nvtx_gpu_proj_trace"}
"""Column of a table -> the recipe of Nsight Systems that writes tables with it."""
_FOOTER_BYTES = 1 << 16


def recipe_kind(head: bytes, path: Path) -> tuple[str, str]:
    """The recipe whose table a Parquet file holds, and the remedy; ``""`` twice if it is not known.

    The names of the columns are in the footer of such a file.
    """
    footer = b""
    if head.startswith(_PARQUET) and path.is_file():
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(max(path.stat().st_size - _FOOTER_BYTES, 0))
            footer = file.read()
    recipe = next((recipe for column, recipe in _RECIPES.items() if column in footer), "")
    what = f"a Parquet table of the recipe {recipe} of Nsight Systems, which holds ranges and no GPU work"
    return (what, "Give the .sqlite of the same report: nsys export --type sqlite FILE") if recipe else ("", "")
