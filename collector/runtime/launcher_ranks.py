"""The rank of a process among many, as the program that launched it states it in the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Launcher(NamedTuple):
    rank: str
    """The variable of the rank among all processes."""
    world_size: str
    """The variable of the number of processes; empty: the launcher states none."""


_LAUNCHERS = (
    _Launcher("RANK", "WORLD_SIZE"),  # torchrun, DeepSpeed, Accelerate
    _Launcher("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    _Launcher("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    _Launcher("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    _Launcher("PMIX_RANK", ""),
    # The number of the job's tasks is that of a step of srun: a batch script, too, has SLURM_PROCID and SLURM_NTASKS.
    _Launcher("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""The first whose variable is set decides: torchrun may run inside a task of Slurm."""

RANK_VARIABLES = tuple(each.rank for each in _LAUNCHERS)
"""The environment variables that state a rank. ``LOCAL_RANK`` is left out, because every node has a rank 0."""

LAUNCHER_VARIABLES = tuple(name for each in _LAUNCHERS for name in each if name)
"""The environment variables that state a rank or the number of ranks."""

_OF_LAUNCHERS = (
    "GROUP_",
    "HYDRA_",
    "LOCAL_",
    "MPI_",
    "MV2_",
    "OMPI_",
    "PMI_",
    "PMIX_",
    "ROLE_",
    "SLURM_",
    "TORCHELASTIC_",
)
"""Prefixes of the names of variables that launchers set for the processes that they start."""


def is_of_launcher(variable: str) -> bool:
    """Whether a launcher may set a variable of the environment for each of its processes."""
    return variable in LAUNCHER_VARIABLES or variable.startswith(_OF_LAUNCHERS)


def launched_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that ``environment`` states; None if it states none."""
    ranks = (_number(environment, launcher.rank) for launcher in _LAUNCHERS)
    return next((rank for rank in ranks if rank is not None), None)


def launched_world_size(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of ranks that ``environment`` states; None if it states none."""
    sizes = (_number(environment, launcher.world_size) for launcher in _LAUNCHERS)
    return next((size for size in sizes if size is not None), None)


def has_other_ranks(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether other processes of the job have other ranks, as far as ``environment`` tells."""
    size = launched_world_size(environment)
    if size is None:  # a launcher that states no number always starts several processes
        return any(not each.world_size and _number(environment, each.rank) is not None for each in _LAUNCHERS)
    return size > 1


def _number(environment: Mapping[str, str], variable: str) -> int | None:
    text = environment.get(variable, "")
    return int(text) if text.isdecimal() else None
