"""The headers of NVTX that this machine has."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path


def include_folder(header: str = "nvToolsExt.h") -> Path | None:
    """The folder of NVTX's headers with ``header`` among them: of NVIDIA's wheel, or of a CUDA toolkit."""
    try:
        files = metadata.files("nvidia-nvtx") or []
    except metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())).parent.parent for file in files if file.name == "nvToolsExt.h"]
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    return next((folder for folder in [*found, toolkit] if (folder / "nvtx3" / header).exists()), None)


def write_cuda_types(folder: Path) -> None:
    """Write a ``cuda.h`` with the types that nvToolsExtCuda.h needs, for machines without CUDA's headers."""
    (folder / "cuda.h").write_text(
        "typedef int CUdevice; typedef struct CUctx_st* CUcontext; typedef struct CUstream_st* CUstream;"
        "typedef struct CUevent_st* CUevent;\n"
    )
