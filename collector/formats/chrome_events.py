"""The events of a Chrome trace, out of text that may be cut off, unclosed or bent.

Chrome lets a trace lack its closing brackets, so a recorder that was killed leaves a file that still counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_NANOS = 1 << 62
"""Times at or beyond this many nanoseconds (146 years) from zero are not taken for times."""
NO_BASE = "base time cut off (the times do not say the date)"
_UNCLOSED = "end of the file missing (its closing brackets are not there)"

# Numbers with a fraction stay text, so that no time goes through a double; NaN and Infinity become text as well.
_DECODER = json.JSONDecoder(parse_float=str, parse_constant=str, strict=False)
# Python refuses to make numbers of thousands of digits, which stay text as well where they come up.
_LONGEST_INT = 30
_PATIENT_DECODER = json.JSONDecoder(
    parse_float=str,
    parse_constant=str,
    parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_INT else digits,
    strict=False,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_EVENT_LIST = re.compile(r'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')
_DECIMAL = re.compile(r"(-?)([0-9]{1,19})(?:\.([0-9]{1,3}))?")


class NotATraceError(ValueError):
    """Text without a list of events; `position` is a character of the text."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


@dataclass
class ChromeEvents:
    """The events of one file, and what the file says besides."""

    events: list[dict[str, Any]] = field(default_factory=list)
    """In file order; numbers with a fraction are still text."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The other keys of the top level (those before the events, where the file is cut off)."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason -> how many events were left out."""
    cut_at: int | None = None
    """Character from which on nothing could be read, or None."""

    @property
    def is_cut(self) -> bool:
        """Whether the end of the file is missing or cannot be read."""
        return self.cut_at is not None or _UNCLOSED in self.skipped


def parse(text: str) -> ChromeEvents:
    """Read a Chrome trace: an object with ``traceEvents`` or a bare list, whole or cut off.

    Raises:
        NotATraceError: the text holds no list of events.
    """
    text = text.removeprefix("\ufeff")
    try:
        whole = _decode(text)
    except RecursionError:
        raise NotATraceError(0, "nested too deeply") from None
    except ValueError:
        return _parse_broken(text)
    if isinstance(whole, list):
        found = ChromeEvents(whole)
    elif isinstance(whole, dict) and isinstance(whole.get("traceEvents"), list):
        found = ChromeEvents(whole.pop("traceEvents"), whole)
    else:
        raise NotATraceError(0, "JSON without a list of trace events")
    return _only_objects(found)


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _PATIENT_DECODER.decode(text)


def _decode_at(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _PATIENT_DECODER.raw_decode(text, at)


def _parse_broken(text: str) -> ChromeEvents:
    """Read event by event until the text makes no sense any more."""
    found = ChromeEvents()
    at = _skip_space(text, 0)
    is_list = text[at : at + 1] == "["
    if text[at : at + 1] == "{":
        opening = _EVENT_LIST.search(text, at)
        if opening is None:
            raise NotATraceError(at, "JSON that is cut off or wrong before its list of trace events")
        found.metadata = _readable_members(text[at + 1 : opening.start()])
        at = opening.end()
    elif is_list:
        at += 1
    else:
        raise NotATraceError(at, "neither a JSON object nor a list")
    while True:
        at = _skip_space(text, at)
        if at >= len(text) or text[at] == "]":
            # Chrome's format allows a bare list to lack its bracket. An object has more to tell after its events.
            if not is_list and not _read_members_after(text[at + 1 :], found):
                found.skipped[_UNCLOSED] += 1
            break
        try:
            event, after = _decode_at(text, at)
        except (ValueError, RecursionError):
            found.cut_at = at
            found.skipped["unreadable rest of the file"] += 1
            break
        found.events.append(event)
        at = _skip_space(text, after)
        if text[at : at + 1] == ",":
            at += 1
    return _only_objects(found)


def _readable_members(text: str) -> dict[str, Any]:
    try:
        members = _PATIENT_DECODER.decode("{" + text.rstrip().removesuffix(",") + "}")
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _read_members_after(text: str, found: ChromeEvents) -> bool:
    """Take over the members that follow the events, up to the object's closing brace; whether that is there."""
    try:
        members, _ = _PATIENT_DECODER.raw_decode("{" + text.lstrip(" \t\r\n,"))
    except (ValueError, RecursionError):
        return False
    found.metadata |= members
    return True


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _only_objects(found: ChromeEvents) -> ChromeEvents:
    objects = [event for event in found.events if isinstance(event, dict)]
    if len(objects) != len(found.events):
        found.skipped["events that are no objects"] += len(found.events) - len(objects)
        found.events = objects
    return found


def nanoseconds(microseconds: Any) -> int | None:
    """A time of the trace as whole nanoseconds (nearest), exactly; None for what is no number or no possible time."""
    if type(microseconds) is int:
        nanos = microseconds * 1000
    elif isinstance(microseconds, str):
        plain = _DECIMAL.fullmatch(microseconds)
        if plain is not None:
            sign, whole, fraction = plain.groups()
            nanos = int(whole) * 1000 + int((fraction or "").ljust(3, "0"))
            nanos = -nanos if sign else nanos
        else:
            try:
                value = Decimal(microseconds)
            except InvalidOperation:
                return None
            if not value.is_finite() or value.adjusted() > 19:
                return None
            nanos = round(value.scaleb(3))
    else:
        return None
    return nanos if -MAX_NANOS < nanos < MAX_NANOS else None


def possible_base(nanos: int, skipped: Counter[str]) -> int:
    """The wall time that a file states for its time 0; one that cannot be is taken as 0 and counted."""
    if -MAX_NANOS < nanos < MAX_NANOS:
        return nanos
    skipped["base times that cannot be (taken as 0)"] += 1
    return 0


def process_names(events: list[dict[str, Any]]) -> dict[Any, str]:
    """Process id -> its name, in file order; the last name of an id holds."""
    names: dict[Any, str] = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "process_name":
            arguments = event.get("args")
            pid = event.get("pid")
            if isinstance(arguments, dict) and isinstance(pid, (int, str)):
                names[pid] = text(arguments.get("name", ""))
    return names


def described_threads(events: list[dict[str, Any]]) -> dict[tuple[Any, Any], dict[str, Any]]:
    """Process and thread id -> the thread's metadata, such as ``name``; the last event of an id holds."""
    threads = {}
    for event in events:
        arguments = event.get("args")
        if event.get("ph") == "M" and event.get("name") == "thread_name" and isinstance(arguments, dict):
            pid, tid = event.get("pid"), event.get("tid")
            if isinstance(pid, int) and isinstance(tid, int):
                threads[pid, tid] = arguments
    return threads


def text(value: Any) -> str:
    """A JSON value as text that protobuf takes: a lone surrogate becomes a question mark."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
