"""The compiler of CUDA on this machine, which a toolkit does not put on PATH."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_nvcc() -> str | None:
    """The path of nvcc: on PATH, in CUDA_HOME or CUDA_PATH, or in /usr/local/cuda."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = os.pathsep.join(str(Path(home, "bin")) for home in homes if home)
    return shutil.which("nvcc") or shutil.which("nvcc", path=folders)
