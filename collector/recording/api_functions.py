"""The functions of CUDA's runtime and driver API, of HIP, Unified Runtime and Level Zero, by their role.

Recordings contain the functions' names. CUPTI has a callback id for each version of a function, so this table lists
names, each without its version.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.distinct import distinct_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_VERSION = re.compile(r"(?:_ptsz|_ptds|_spt|_v\d+)+$")


class ApiRole(enum.Enum):
    """The role of an API function for the tracer; most functions have none."""

    NONE = enum.auto()
    LAUNCH = enum.auto()
    """It starts a kernel or a graph on a device."""
    CAPTURE_BEGIN = enum.auto()
    """It begins the capture of a graph: later launches run when the graph is launched."""
    CAPTURE_END = enum.auto()
    ALLOCATION = enum.auto()
    """It allocates device memory; page-locked host memory is not counted."""
    RELEASE = enum.auto()
    """It frees device memory."""
    GRAPH_UPDATE = enum.auto()
    """It gives an executable graph the parameters of another graph."""
    PEER_COPY = enum.auto()
    """It copies between devices."""
    COPY = enum.auto()
    """It copies between two addresses, which may belong to two devices."""
    WAIT = enum.auto()
    """It makes the host wait for a device, a stream or an event."""


_ROLES = {
    # Launches of host functions run no work on a device.
    ApiRole.LAUNCH: r"(?:cu|cuda)(?:Graph)?Launch(?!HostFunc)\w*"
    r"|hip(?:Graph|(?:Ext|Hcc)?(?:Module)?|Drv)Launch(?!HostFunc)\w*"
    r"|urEnqueue(?:Cooperative)?KernelLaunch\w*|zeCommandListAppendLaunch\w*",
    ApiRole.CAPTURE_BEGIN: r"(?:cu|cuda|hip)StreamBeginCapture\w*",
    ApiRole.CAPTURE_END: r"(?:cu|cuda|hip)StreamEndCapture\w*",
    ApiRole.ALLOCATION: r"cudaMalloc(?:Pitch|3D|Managed|Async|FromPoolAsync|Array|3DArray|MipmappedArray)?"
    r"|cuMemAlloc(?:Pitch|Managed|Async|FromPoolAsync)?|cuArray(?:3D)?Create|cuMipmappedArrayCreate|cuMemCreate",
    ApiRole.RELEASE: r"cudaFree(?:Async|Array|MipmappedArray)?"
    r"|cuMemFree(?:Async)?|cuArrayDestroy|cuMipmappedArrayDestroy|cuMemRelease",
    ApiRole.GRAPH_UPDATE: r"(?:cu|cuda)GraphExecUpdate",
    ApiRole.PEER_COPY: r"(?:cu|cuda)Memcpy(?:3D)?Peer(?:Async)?",
    ApiRole.COPY: r"(?:cu|cuda)Memcpy(?:2D|3D)?(?:Async)?|cuMemcpyDtoD(?:Async)?|cuMemcpy2DUnaligned",
    ApiRole.WAIT: r"(?:cu|hip|ze)\w*Synchronize\w*|urQueueFinish|urEventWait",
}
"""Role -> a regular expression that matches the whole names, without version, of its functions.

Functions of other vendors are in the traces of other programs only, so they have the roles that matter there.
"""
_PREFIXES = ("cu", "hip", "ur", "ze")
"""The first letters of all of these functions."""
_PATTERNS = {role: re.compile(names) for role, names in _ROLES.items()}


def plain_api_name(name: str) -> str:
    """Return an API function's name without its version suffix and without that of its default stream.

    >>> plain_api_name("cudaLaunchKernel_v7000"), plain_api_name("cudaMemcpyAsync_ptsz_v7000")
    ('cudaLaunchKernel', 'cudaMemcpyAsync')
    """
    return _VERSION.sub("", name) or name


@lru_cache(maxsize=4096)
def role_of(name: str) -> ApiRole:
    """The role of the API function with this name, in any version."""
    plain = plain_api_name(name)
    return next((role for role, pattern in _PATTERNS.items() if pattern.fullmatch(plain)), ApiRole.NONE)


def have_role(name_ids: npt.NDArray[Any], strings: Sequence[str], role: ApiRole) -> npt.NDArray[np.bool_]:
    """Whether each row of ``api_calls`` is a call of a function with ``role``.

    Only the names of these rows are looked at: a part of a long recording has few of its texts.

    Args:
        name_ids: the column ``name_id`` of the rows; an id without a text has no role.
        strings: the texts of the recording.
        role: the role.
    """
    distinct, codes = distinct_codes(name_ids)
    found = [each < len(strings) and _has_role(strings[each], role) for each in distinct.tolist()]
    has_role: npt.NDArray[np.bool_] = np.array(found, bool)[codes]
    return has_role


def _has_role(name: str, role: ApiRole) -> bool:
    return name.startswith(_PREFIXES) and role_of(name) is role
