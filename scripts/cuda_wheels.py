"""NVIDIA's CUPTI headers and libraries, taken from their PyPI wheels and kept in a cache, for tests only.

The wheels are NVIDIA's, under NVIDIA's licence; none of their content enters this repository or a build of it.
`COLLECTOR_CACHE` names the cache (default: `cupti-collector` under the user's cache folder).
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

RELEASES = {
    "12.0": ("nvidia-cuda-cupti-cu12==12.0.146", "nvidia-cuda-runtime-cu12==12.0.146"),
    "12.2": ("nvidia-cuda-cupti-cu12==12.2.142", "nvidia-cuda-runtime-cu12==12.2.140"),
    "12.3": ("nvidia-cuda-cupti-cu12==12.3.101", "nvidia-cuda-runtime-cu12==12.3.101"),
    "12.4": ("nvidia-cuda-cupti-cu12==12.4.127", "nvidia-cuda-runtime-cu12==12.4.127"),
    "12.5": ("nvidia-cuda-cupti-cu12==12.5.82", "nvidia-cuda-runtime-cu12==12.5.82"),
    "12.6": ("nvidia-cuda-cupti-cu12==12.6.80", "nvidia-cuda-runtime-cu12==12.6.77"),
    "12.8": ("nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cuda-runtime-cu12==12.8.90"),
    "12.9": ("nvidia-cuda-cupti-cu12==12.9.79", "nvidia-cuda-runtime-cu12==12.9.79"),
    "13.0": ("nvidia-cuda-cupti==13.0.85", "nvidia-cuda-runtime==13.0.*"),
    "13.1": ("nvidia-cuda-cupti==13.1.115", "nvidia-cuda-runtime==13.1.*"),
    "13.2": ("nvidia-cuda-cupti==13.2.75", "nvidia-cuda-runtime==13.2.*"),
    "13.3": ("nvidia-cuda-cupti==13.3.75", "nvidia-cuda-runtime==13.3.*"),
    "13.4": ("nvidia-cuda-cupti==13.4.92", "nvidia-cuda-runtime==13.4.*"),
    "13.5": ("nvidia-cuda-cupti==13.5.25", "nvidia-cuda-runtime==13.5.*"),
}
"""CUDA version -> requirements that contain its CUPTI and its cuda.h. Every version in which a record grew is here."""

COMPILER_HEADERS = "nvidia-cuda-crt==13.5.*"
"""Macros that headers beside cuda.h include; a separate package since 13.0, which also works with 12.x."""


CUPY = "cupy-cuda13x==14.2.0"
CUPTI_PYTHON = "cupti-python==13.0.1"


class WheelMissingError(Exception):
    """A wheel is neither in the cache nor available from the package index."""


def cache() -> Path:
    """The folder of unpacked wheels."""
    named = os.environ.get("COLLECTOR_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "cupti-collector"


WRITTEN_KINDS = (
    "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "RUNTIME", "DRIVER", "EXTERNAL_CORRELATION", "SYNCHRONIZATION",
    "OVERHEAD", "MEMORY2",
)  # fmt: skip
"""The kinds of records that tests/cupti/nvidia_records.cpp writes."""


def unpacked(
    requirement: str, wanted: str = "/include/|/libcupti[.]so", label: str = "", *, arch: str = "x86_64"
) -> Path:
    """The folder with the files of a wheel whose paths `wanted` is found in; downloads it on first use.

    Args:
        requirement: the wheel.
        wanted: a regular expression; by default headers and libcupti.
        label: added to the folder's name, where the wheel depends on more than the requirement.
        arch: the architecture of the wheel; its name is added to the folder's, too.

    Raises:
        WheelMissingError: with the end of pip's output.
    """
    host = "" if arch == "x86_64" else f"-{arch}"
    folder = cache() / (requirement.replace("==", "-").removesuffix(".*") + label + host)
    if folder.is_dir():
        return folder
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        if host:
            command += [f"--platform=manylinux{glibc}_{arch}" for glibc in ("_2_28", "_2_25", "_2_17", "2014")]
        done = subprocess.run([*command, "-d", scratch, requirement], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines() or ["pip printed nothing"]
            raise WheelMissingError(f"{requirement} could not be downloaded: {last[-1]}")
        (wheel,) = Path(scratch).glob("*.whl")
        content = Path(scratch) / "content"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(content, [name for name in archive.namelist() if re.search(wanted, name)])
        try:
            content.rename(folder)
        except OSError:  # another process has created it meanwhile
            if not folder.is_dir():
                raise
    return folder


def include_folders(cuda: str) -> list[Path]:
    """Folders to compile `#include <cupti.h>` of this CUDA version with, without other parts of CUDA."""
    folders = [unpacked(requirement) for requirement in (*RELEASES[cuda], COMPILER_HEADERS)]
    return [next(folder.glob("nvidia/*/include")) for folder in folders]


def libcupti(cuda: str, arch: str = "x86_64") -> Path:
    """The libcupti of this CUDA version."""
    return next(unpacked(RELEASES[cuda][0], arch=arch).glob("nvidia/*/lib/libcupti.so.*"))


def cupy_nvtx(arch: str = platform.machine()) -> Path:
    """A folder for ``sys.path`` that contains CuPy's extension module with its copy of NVTX, and nothing else of CuPy.

    The wheel has 70 MB; the module alone needs neither CUDA nor the rest of CuPy.
    """
    return unpacked(CUPY, "cupy_backends/cuda/libs/nvtx[.]", _python_tag(), arch=arch)


def cupti_python(arch: str = platform.machine()) -> Path:
    """A folder for ``sys.path`` that contains NVIDIA's package cupti-python, whose records need no libcupti."""
    return unpacked(CUPTI_PYTHON, "^cupti/", _python_tag(), arch=arch)


def _python_tag() -> str:
    """This Python, as part of the name of a folder with extension modules."""
    return f"-{sys.implementation.cache_tag}{sys.abiflags}"


NEWER_STRUCTS = {"CUPTI_ACTIVITY_KIND_JIT": "CUpti_ActivityJit2"}
"""Kind constant -> the struct that libcupti writes where the header declares it, whichever one its comment names."""


def documented_structs(include: Path) -> dict[str, str]:
    """Kind constant -> the struct of its records, which its comment in cupti_activity.h names."""
    text = (include / "cupti_activity.h").read_text(errors="replace")
    body = text[: text.index("} CUpti_ActivityKind;")]
    found = {}
    for comment, kind in re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*(CUPTI_ACTIVITY_KIND_\w+)\s*=\s*\d+", body, re.DOTALL):
        if structs := re.findall(r"CUpti_Activity\w+", comment):
            found[kind] = structs[-1]
    return found | {kind: struct for kind, struct in NEWER_STRUCTS.items() if f"}} {struct};" in text}


def build_records_library(cuda: str, source: Path, library: Path, compiler: str = "g++") -> None:
    """Compile tests/cupti/nvidia_records.cpp, which writes records of NVIDIA's own structs, for this CUDA version.

    Raises:
        subprocess.CalledProcessError: with the compiler's output.
    """
    includes = include_folders(cuda)
    structs = documented_structs(includes[0])
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-o", str(library)]
    command += [
        f"-D{kind.removeprefix('CONCURRENT_')}={structs['CUPTI_ACTIVITY_KIND_' + kind]}" for kind in WRITTEN_KINDS
    ]
    for include in includes:
        command += ["-isystem", str(include)]
    bare = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}  # no installed toolkit, and no preloaded sanitizer
    subprocess.run([*command, str(source)], env=bare, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    for version in RELEASES:
        print(version, libcupti(version), *include_folders(version))
