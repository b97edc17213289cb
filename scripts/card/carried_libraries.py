"""Libcuptis that are carried to a machine in a folder, plain or compressed, and their versions."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
SECONDS = 20
"""The time limit of asking one for its version."""

ASK = """
import ctypes, os, sys
try:  # a libcupti without a driver in its process may crash
    ctypes.CDLL(os.environ.get("COLLECTOR_LIBCUDA") or "libcuda.so.1")
except OSError:
    pass
version = ctypes.c_uint32()
result = ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(version))
print(version.value if result == 0 else 0)
"""


def found_libraries(folder: Path) -> list[Path]:
    """Every libcupti.so* in a folder and below it, plain or compressed; a file that has several names once."""
    files = sorted(path for path in folder.rglob("libcupti.so*") if path.is_file())
    return list({path.resolve(): path for path in reversed(files)}.values())


def unpacked(library: Path, folder: Path) -> Path:
    """The library itself, or its decompressed copy in a folder of its own, which an earlier call may have made."""
    opener = OPENERS.get(library.suffix)
    if opener is None:
        return library
    copy = folder / library.stem
    if not copy.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = copy.with_name(f".{copy.name}")
        with opener(library) as source, partial.open("wb") as target:
            shutil.copyfileobj(source, target)
        partial.replace(copy)
    return copy


def carried_versions(folder: Path, scratch: Path, python: str, environment: dict[str, str]) -> dict[int, Path]:
    """The number of cuptiGetVersion -> the plain file of each library below a folder that can be loaded.

    Args:
        folder: that of the libraries.
        scratch: decompressed copies are put here.
        python: an interpreter; a process can load one libcupti only.
        environment: of that process.
    """

    def ask(place: tuple[int, Path]) -> tuple[int, Path]:
        index, file = place
        library = unpacked(file, scratch / f"library-{index}")
        try:
            done = subprocess.run(
                [python, "-c", ASK, str(library)], env=environment, cwd=scratch, capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 0, library
        return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdecimal() else 0, library

    scratch.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(4) as pool:
        found = dict(pool.map(ask, enumerate(found_libraries(folder))))
    return {version: library for version, library in sorted(found.items()) if version}
