"""The environment of a report: card, driver, libcupti, libraries, revision of the source.

Reports are passed on to others, so they contain no folder, host, user, command line or variable of the machine.
"""

from __future__ import annotations

import functools
import platform
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from collector.text.library_path import portable
from collector.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.bench.gpu import Gpu

_LIBRARIES = (
    "numpy", "scipy", "cuda-python", "cuda-bindings", "nvidia-ml-py", "nvidia-cuda-nvrtc", "nvidia-cuda-cupti",
    "nvidia-cublas", "torch", "triton", "cupy", "cupy-cuda12x", "cupy-cuda13x", "jax",
)  # fmt: skip
_HOMES = r"(?:/home|/Users)/[^/\s:'\"]+|/root"
_KERNEL = re.compile(r"([A-Za-z]+)[- ]?(\d+(?:\.\d+)*)?")
_FROM_RECORDING = ("driver_version", "cuda_version", "cupti_path", "cupti_api_version", "source")


def environment(gpu: Gpu, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's environment; ``recorded`` is a recording's environment."""
    entries = {
        "gpu": gpu.name,
        "gpu_uuid": gpu.uuid,
        "simulated": gpu.simulated or bool(recorded.get("simulated")),
        "l2_bytes": gpu.l2_bytes,
        **{name: recorded[name] for name in _FROM_RECORDING if name in recorded},
        "collector": version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": _libraries(),
        "git_revision": _git_revision(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "program": sys.argv[0],
    }
    return without_places(entries)


def without_places(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's environment without the entries that identify the machine or its user.

    Of paths it keeps the end, and of the system the kernel's version. Entries stored by earlier versions are reduced in
    the same way.
    """
    kept = dict(entries)
    if isinstance(program := kept.get("program"), str):
        kept["program"] = PurePath(program).name
    if isinstance(path := kept.get("cupti_path"), str):
        kept["cupti_path"] = portable(path)
    if isinstance(system := kept.get("platform"), str) and (kernel := _KERNEL.match(system)):
        kept["platform"] = " ".join(filter(None, kernel.groups()))
    return kept


def without_home(text: str) -> str:
    """Return ``text``, for example an error's message, with ``~`` for home folders."""
    home = re.escape(str(Path.home()))
    return re.sub(rf"(?:{home}|{_HOMES})(?![\w.-])", "~", text)


def loaded_torch() -> Any:
    """PyTorch, if the program has loaded it, and it was built for GPUs and has one; else None."""
    torch: Any = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


@functools.cache
def _libraries() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        # A wheel of PyTorch from PyPI keeps the CUDA that it was built for to the module: 2.14.1+cu130.
        stated = str(getattr(sys.modules.get(name), "__version__", ""))
        found[name] = stated if stated.startswith(f"{installed}+") else installed
    return found


@functools.cache
def _git_revision() -> str:
    """The working directory's commit, with ``+`` if files differ from it; empty outside a repository."""
    try:
        commit, changed = (
            subprocess.run(["git", *command], capture_output=True, timeout=10, check=True).stdout.strip()
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit.decode() + ("+" if changed else "")
