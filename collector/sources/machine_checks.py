"""The requirements of tracing, and whether this machine meets them; ``collector info`` prints them.

Nothing is changed and no library is called here; `collector.sources.Source.probe` opens the driver and libcupti.
"""

from __future__ import annotations

import os
import re
import stat
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.errors import not_installed
from collector.runtime.extension import INJECTION_VARIABLE, is_capture_library
from collector.sources.native import cupti_candidates, extension_error
from collector.version import DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OK, FAILED, WARNING, NOTE = "ok", "failed", "warning", "note"
"""States of a check: the requirement is met; it is not met, and nothing can be traced; something is wrong but does not
prevent tracing; the item does not matter for tracing."""
_ELF = b"\x7fELF"
"""The first bytes of a library."""
_NODES = ("nvidiactl", "dxg")
"""The files in ``/dev`` of NVIDIA's kernel module and of WSL 2; a machine with a GPU has one of them."""
_CAP_SYS_ADMIN = 21
"""Bit of the capability in ``CapEff`` of ``/proc/self/status`` (linux/capability.h)."""
_TOOLS = {
    "libToolsInjection64.so": "Nsight Systems",
    "libcuda-injection.so": "Nsight Compute",
    "libaccinj64.so": "nvprof",
}
"""File name of an injected library -> the tool that it belongs to."""


_OF_EXTRA = re.compile(r"""(?P<name>[\w.-]+)[^;]*;.*\bextra == ["'](?P<extra>[\w-]+)["']""")
"""A requirement of an extra in the metadata of a distribution."""
_FOR_DEVELOPERS = ("test", "dev")


class Check(NamedTuple):
    """One thing that was checked."""

    name: str
    state: str
    text: str
    remedy: str = ""
    """The remedy for an item that is missing or would be useful; else empty."""


def machine_checks(
    found: Mapping[str, Any],
    *,
    environment: Mapping[str, str] = os.environ,
    root: Path = Path("/"),
) -> list[Check]:
    """The checks of a machine, those of tracing itself first.

    Args:
        found: the result of `collector.sources.Source.probe`, or ``available``, ``cause`` and ``remedy`` of its error.
        environment: the variables to look at.
        root: the folder that holds ``proc`` and ``dev``.
    """
    checks = [
        _tracing(found),
        *_libraries(found),
        *_devices(found, root),
        *_named_libraries(environment),
        *_candidates(found, environment),
        *_permission(root),
        *_container(found, environment, root),
        *_other_tool(environment),
        *_extras(),
    ]
    if not found.get("available"):
        return checks
    return [each._replace(state=WARNING) if each.state == FAILED else each for each in checks]


def _tracing(found: Mapping[str, Any]) -> Check:
    if found.get("available"):
        return Check("tracing", OK, "available")
    return Check("tracing", FAILED, f"unavailable: {found.get('cause', '')}", str(found.get("remedy", "")))


def _libraries(found: Mapping[str, Any]) -> Iterator[Check]:
    if found.get("simulated"):
        yield Check("simulated", NOTE, "yes: no real GPU is behind these libraries")
    yield _driver(found)
    if found.get("cupti_path"):
        version = f"CUDA {cuda_text(found.get('cuda_version'))}, API version {found.get('cupti_api_version')}"
        reason = f"; taken because: {found['cupti_reason']}" if found.get("cupti_reason") else ""
        yield Check("libcupti", OK, f"{found['cupti_path']} ({version}{reason})")
    features = found.get("features") or {}
    for name, wanted in (("features", True), ("without", False)):
        if text := ", ".join(sorted(each for each, there in features.items() if bool(there) is wanted)):
            yield Check(name, NOTE, text)


def _driver(found: Mapping[str, Any]) -> Check:
    version = cuda_text(found.get("driver_version"))
    if found.get("driver_path"):
        return Check("driver", OK, f"{found['driver_path']} (CUDA {version})" if version else str(found["driver_path"]))
    if version:
        return Check("driver", OK, f"CUDA {version}")
    if found.get("error") == "driver-not-found":
        return Check("driver", FAILED, "no usable driver", str(found.get("remedy", "")))
    return Check("driver", NOTE, "not checked")


def _devices(found: Mapping[str, Any], root: Path) -> Iterator[Check]:
    for device in found.get("devices") or ():
        yield Check(f"device {device['ordinal']}", OK, str(device["name"]))
    node = root / "dev" / "nvidiactl"
    if node.exists() and not os.access(node, os.R_OK | os.W_OK):
        yield Check(
            "device nodes", FAILED, f"{node} may not be opened by this user", "Add the user to the group of the file"
        )


def _named_libraries(environment: Mapping[str, str]) -> Iterator[Check]:
    """Faults of the libraries that variables name by a path; the dynamic loader searches for names without a folder."""
    for variable in ("COLLECTOR_LIBCUDA", "COLLECTOR_LIBCUPTI"):
        path = environment.get(variable, "")
        if "/" in path and (trouble := _trouble_of_library(path)):
            yield Check(variable, FAILED, f"names {path}, which {trouble}", "Correct it, or unset it to search")


def _trouble_of_library(path: str) -> str:
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return "is not a file"
        with Path(path).open("rb") as file:
            return "" if file.read(len(_ELF)) == _ELF else "is not a library"
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _candidates(found: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Check]:
    """Every libcupti in the usual places, including those that need another driver."""
    if (error := extension_error()) is not None:
        yield Check("native extension", FAILED, f"cannot be loaded: {error}", "Install cupti-collector again with pip")
        return
    named = environment.get("COLLECTOR_LIBCUPTI", "")
    passed_over = {os.path.realpath(path): cause for path, cause in found.get("cupti_passed_over") or ()}
    candidates = {os.path.realpath(path): path for path in reversed(cupti_candidates())}  # of links the first
    for file, path in reversed(candidates.items()):
        reasons = []
        if "/" in named and file == os.path.realpath(named):
            reasons.append("COLLECTOR_LIBCUPTI names it")
        if found.get("cupti_path") and file == os.path.realpath(found["cupti_path"]):
            reasons.append("taken")
        if file in passed_over:
            reasons.append(f"passed over: {passed_over[file]}")
        name = Path(file).name
        what = ", ".join([*([name] if name != Path(path).name else []), *reasons])
        yield Check("libcupti found", NOTE, f"{path} ({what})" if what else path)
    if not candidates and not found.get("cupti_path"):
        yield Check(
            "libcupti found",
            FAILED,
            "none in site-packages, CUDA_HOME or /usr/local/cuda",
            "pip install nvidia-cuda-cupti, or nvidia-cuda-cupti-cu12 for a driver of CUDA 12",
        )


def _permission(root: Path) -> Iterator[Check]:
    """Whether the driver restricts profiling to administrators, as the parameters of its kernel module state."""
    parameters = _text(root / "proc" / "driver" / "nvidia" / "params")
    if "RmProfilingAdminOnly: 1" not in parameters:
        return
    status = dict(line.split(":", 1) for line in _text(root / "proc" / "self" / "status").splitlines() if ":" in line)
    capabilities = int(status.get("CapEff", "0").strip() or "0", 16)
    if capabilities >> _CAP_SYS_ADMIN & 1:
        yield Check("permission", OK, "profiling is restricted to administrators, and this process has CAP_SYS_ADMIN")
        return
    yield Check(
        "permission",
        NOTE,
        "the driver's module restricts profiling to administrators (RmProfilingAdminOnly: 1), and this process has no "
        "CAP_SYS_ADMIN: if a trace fails with PermissionDeniedError, this is why",
        "Load the module with NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN; in a container, "
        "that is --cap-add SYS_ADMIN beside --gpus",
    )


def _container(found: Mapping[str, Any], environment: Mapping[str, str], root: Path) -> Iterator[Check]:
    marks = (root / ".dockerenv", root / "run" / ".containerenv")
    if not any(mark.exists() for mark in marks):
        return
    if found.get("available") and not found.get("simulated"):
        yield Check("container", OK, "it has a GPU")
        return
    if not any((root / "dev" / node).exists() for node in _NODES):
        yield Check(
            "container",
            FAILED,
            f"it has no GPU: there is no {' or '.join(f'/dev/{node}' for node in _NODES)} in it",
            "Start it with --gpus all, and with --cap-add SYS_ADMIN where profiling is restricted to administrators",
        )
        return
    capabilities = environment.get("NVIDIA_DRIVER_CAPABILITIES", "")
    if capabilities and not {"all", "compute"} & set(capabilities.split(",")):
        yield Check(
            "container",
            FAILED,
            f"it has no libcuda: NVIDIA_DRIVER_CAPABILITIES is {capabilities}",
            "Start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        )
        return
    yield Check("container", OK, "it has a GPU")


def _other_tool(environment: Mapping[str, str]) -> Iterator[Check]:
    path = environment.get(INJECTION_VARIABLE, "")
    if not path:
        return
    if is_capture_library(path):
        yield Check("other tools", NOTE, "`collector run` records this process")
        return
    tool = _TOOLS.get(Path(path).name)
    yield Check(
        "other tools",
        FAILED,
        f"{INJECTION_VARIABLE} names {path}{f', of {tool}' if tool else ''}: CUPTI serves one tool",
        f"Unset {INJECTION_VARIABLE}, or use that tool alone",
    )


def _extras() -> Iterator[Check]:
    """The packages that only some functions need, by the extra that installs them."""
    for extra, packages in _packages_of_extras().items():
        missing = [name for name in packages if not _is_installed(name)]
        if missing:
            _, remedy = not_installed(extra, extra)
            yield Check(f"extra {extra}", NOTE, f"without {', '.join(missing)}", remedy)
        else:
            yield Check(f"extra {extra}", OK, ", ".join(packages))


def _packages_of_extras() -> dict[str, list[str]]:
    """Extra -> the packages that it installs, as the installed distribution states them."""
    found: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return found
    for requirement in requirements:
        parsed = _OF_EXTRA.match(requirement)
        if parsed is not None and parsed["extra"] not in _FOR_DEVELOPERS:
            found.setdefault(parsed["extra"], []).append(parsed["name"])
    return found


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def cuda_text(version: int | None) -> str:
    """``12.4`` of CUDA's number 12040; ``""`` if it is not known."""
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
