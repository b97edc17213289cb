"""NVTX ranges, by which a program and its libraries name their work, as annotations.

>>> import collector
>>> collector.nvtx.arm()

Every library that uses NVTX contains a copy of it, which looks for a tool once, at its first call, through the variable
``NVTX_INJECTION64_PATH``. `arm` puts the path of our handler there (``native/nvtx``). From then on each trace records
the ranges that are pushed and popped.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from collector.files.path_kinds import exists
from collector.runtime.extension import capture_library, is_capture_library
from collector.sources.native import extension_error
from collector.text.wording import counted
from collector.tracing.caller_warnings import warn_caller

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from collector.recording.capture import Capture

__all__ = ["arm", "copies"]

VARIABLE = "NVTX_INJECTION64_PATH"
"""The variable that names the library of a tool for NVTX."""
NEXT_TOOL_VARIABLE = "COLLECTOR_NVTX_NEXT"
"""The library that `VARIABLE` named before: our handler passes every call on to it."""
_NO_TOOL = ("", "./.")
"""Values of `VARIABLE` that name no tool."""

_is_armed = False


def arm() -> None:
    """Let every copy of NVTX that has made no call yet find our handler, in this process and in its children.

    Call it before the program's first NVTX call; a decorator of the ``nvtx`` package makes one when it is applied.
    ``COLLECTOR_NVTX=1`` in the environment calls it when ``collector`` is imported, ``trace(nvtx=True)`` when a trace
    begins. A tool that the variable named before gets every call after us.
    """
    global _is_armed
    library = capture_library()
    if library is None:
        warn_caller("NVTX ranges are not recorded: the native extension is not installed")
        return
    variables = arming_variables(os.environ, library)
    if trouble := missing_tool(variables):
        warn_caller(trouble)
    os.environ.update(variables)
    _is_armed = True


def missing_tool(environment: Mapping[str, str]) -> str:
    """One line if the tool that receives the ranges after our handler does not exist; ``environment`` is armed."""
    tool = environment.get(NEXT_TOOL_VARIABLE, "")
    return f"{VARIABLE} named {tool}, which does not exist" if _is_missing(tool) else ""


def _is_missing(tool: str) -> bool:
    """Whether a tool named by its path does not exist. The dynamic linker searches for names without a folder."""
    return "/" in tool and not exists(tool)


def arming_variables(environment: Mapping[str, str], library: Path) -> dict[str, str]:
    """The variables by which NVTX finds the handler in ``library``, and the handler the tool that was named before."""
    before = environment.get(VARIABLE, "")
    variables = {VARIABLE: str(library)}
    if before not in _NO_TOOL and not is_capture_library(before):
        variables[NEXT_TOOL_VARIABLE] = before
    return variables


def copies() -> list[tuple[str, str]]:
    """The libraries of this process that contain NVTX, and the state of each copy.

    ``fresh``: it has made no call yet, and will find the handler if that is armed. ``handled``: its calls reach the
    handler. ``missed``: it was used before the handler was armed, and its ranges are never seen. ``unknown``: its calls
    do not reach the handler, and the library has no symbols that tell whether it was used.
    """
    from collector import _native

    return _native.nvtx_copies()


def missed_copies() -> list[str]:
    """The libraries whose copy of NVTX this process used before the handler was armed, for ``collector info``."""
    if extension_error() is not None:
        return []
    return [library for library, state_of_copy in copies() if state_of_copy == "missed"]


def state() -> str:
    """One line about the handler, for ``collector info``."""
    library, named = capture_library(), os.environ.get(VARIABLE, "")
    if library is None:
        return "not available: the native extension is not installed"
    if named not in _NO_TOOL and is_capture_library(named):
        then = os.environ.get(NEXT_TOOL_VARIABLE, "")
        return "ranges are recorded" + (f", and passed on to {then}" if then else "")
    fate = "does not exist" if _is_missing(named) else "arm() keeps in use"
    other = f"; {VARIABLE} names {named}, which {fate}" if named not in _NO_TOOL else ""
    return f"ranges are not recorded: set COLLECTOR_NVTX=1, or call collector.nvtx.arm(){other}"


def prepare(wanted: bool | tuple[str, ...] | None) -> None:
    """Arm the handler for a trace that wants ranges, and again if another tool has changed the variable since."""
    if wanted or (wanted is None and _is_armed):
        arm()


def add_facts(capture: Capture, wanted: bool | tuple[str, ...] | None) -> str:
    """Add what the handler knows about a step to ``capture``; return one line about what it could not see, if any."""
    environment = capture["environment"]
    if wanted is False or environment.get("source") != "native":
        return f"the source {environment.get('source')!r} records no NVTX ranges" if wanted else ""
    from collector import _native

    status = _native.nvtx_status(wanted if isinstance(wanted, tuple) else ())
    if not (wanted or _is_armed or status["libraries"]):
        return ""
    if status["failures"]:
        capture["counters"]["nvtx_failures"] = status["failures"]
    if status["next_tool_trouble"]:
        environment["nvtx_next_tool"] = status["next_tool_trouble"]
    environment["thread_names"] = {**environment.get("thread_names", {}), **status["thread_names"]}
    from collector.recording import stream_devices, stream_names  # not before: they need numpy

    tables = capture["tables"]
    stated = stream_devices.stated_first_contexts(environment)  # of the recording that the step is a part of
    names = (status["device_names"], status["context_names"], status["stream_names"])
    environment.pop(stream_names.DEVICE_LABELS, None)  # those of a recording are of all its streams
    if labels := stream_names.device_labels(tables, *names, stated):
        environment[stream_names.DEVICE_LABELS] = labels
        first = stream_devices.first_contexts(stream_devices.stream_places(tables), stated)
        environment.update(stream_devices.with_first_contexts({}, first))  # some rows of the tables may be set apart
    for figure in ("names_unknown", "names_dropped", "names_cut"):
        if status[figure]:
            capture["counters"][f"nvtx_{figure}"] = status[figure]
    return "; ".join(filter(None, [_missed(capture), _absent_domains(capture, status)]))


def is_armed() -> bool:
    """Whether `arm` was called in this process."""
    return _is_armed


def missed_facts() -> tuple[dict[str, str], dict[str, int]]:
    """Entries about the copies whose ranges are missing: for the recording's environment, and for its ledger."""
    # No Path: a test that sets `os.name` cannot make one.
    missed = sorted({os.path.basename(library) for library in missed_copies()})  # noqa: PTH119
    return ({"nvtx_missed": ", ".join(missed)}, {"nvtx_copies_missed": len(missed)}) if missed else ({}, {})


def _missed(capture: Capture) -> str:
    """Note the copies of NVTX whose ranges are not seen; return one line about them, if there are any."""
    texts, counters = missed_facts()
    if not counters:
        return ""
    capture["environment"].update(texts)
    capture["counters"].update(counters)
    was = counted("[was|were]", counters["nvtx_copies_missed"])
    return f"NVTX of {texts['nvtx_missed']} {was} in use before the handler was armed: those ranges are not seen"


def _absent_domains(capture: Capture, status: Mapping[str, Any]) -> str:
    """Note the domains that a trace chose and the program has not made; return one line about them, if there are any.

    There are none as long as the program has made no domain at all.
    """
    absent = status["absent"]
    if not absent:
        return ""
    others = [name for name in status["domains"] if name]
    capture["environment"].update(nvtx_absent=_some(absent), nvtx_domains=_some(others))
    capture["counters"]["nvtx_domains_absent"] = len(absent)
    return f"no NVTX domain named {_some(map(repr, absent))} was seen; the program has: {_some(map(repr, others))}"


def _some(names: Iterable[str]) -> str:
    """The first names in one line."""
    shown = list(islice(names, _MOST_NAMED + 1))
    return ", ".join(shown[:_MOST_NAMED] + ["..."] * (len(shown) > _MOST_NAMED))


_MOST_NAMED = 10
"""The maximum number of domains that a message names."""


def domain_names(domains: Any) -> tuple[str, ...]:
    """The domains of ``trace(nvtx=[...])``.

    Raises:
        TypeError: the value is not a list of names.
        ValueError: a name is not Unicode text.
    """
    names: Iterable[Any] = (domains,) if isinstance(domains, str) else domains
    try:
        found = tuple(names)
    except TypeError:
        raise TypeError(f"nvtx takes True, False or names of domains, not {domains!r}") from None
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"nvtx takes names of domains, not {name!r}")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"nvtx takes names of domains in Unicode, and {name!r} has a lone surrogate") from None
    return found
