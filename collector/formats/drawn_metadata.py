"""The metadata of a file that this project drew: the provenance of its step, and that of each of its processes.

A merged trace states the provenance and the objects of each input. The inputs of one process, which follow each other
on the same tracks, are one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.formats.chrome_events import text
from collector.protos.run_metadata_pb2 import Provenance
from collector.recording.ledger import LOSSES
from collector.recording.shed_kinds import of_several
from collector.recording.step_origin import StepOrigin
from collector.stepstats.environment_texts import environment_of
from collector.stepstats.node_times import UNTIMED_NODES
from collector.stepstats.object_tables import OBJECT_TABLES
from collector.stepstats.stated_window import is_held, stated_window

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from collector.formats.chrome_events import ChromeEvents
    from collector.stepstats.stated_window import Window

    Rows = list[dict[str, Any]]

_NOT_DRAWN = {
    "left_out": "slices left out, as they were too many (max_events)",
    "filtered": "slices filtered out",
    "untimed": UNTIMED_NODES,
}
"""Figure of a drawing -> what is missing in a step that is read from it."""
_KEYS = {"devices": ("device_id",), "contexts": ("context_id",), "streams": ("context_id", "stream_id")}
"""Table of objects that exist through many steps -> the columns that identify them."""
_CORRELATIONS = ("correlation_id", "update_correlation_id")


def provenance(found: ChromeEvents) -> Provenance:
    """The provenance of the step; of a merged trace that of all its inputs."""
    stated = _provenance_in(found.metadata.get("otherData", {}))
    if inputs := inputs_of(found):
        stated.ledger.update(ledger_of_inputs(inputs))
        stated.window_start_nanos, stated.window_end_nanos = window_of_inputs(inputs) or (0, 0)
    return stated


def inputs_of(found: ChromeEvents) -> Rows:
    """The metadata of each input of a merged trace; empty for any other trace."""
    return inputs_in(found.metadata.get("otherData", {}))


def inputs_in(about: Any) -> Rows:
    """The metadata of each input in the metadata of a merged file; empty for any other file."""
    return _rows(about, "inputs")


class StatedProcess(NamedTuple):
    """The metadata of one process: all that is stated besides its slices."""

    environment: dict[str, Any]
    objects: Mapping[str, Rows]
    """Table of `OBJECT_TABLES` -> rows with wall times of the trace, and the correlation ids that its slices have."""
    is_recorded: bool
    """Whether its slices were drawn from a recording, which states a ledger, and not from StepStats."""

    @classmethod
    def of_trace(cls, found: ChromeEvents) -> StatedProcess:
        """The only process of a trace that is not merged, or the first one."""
        about = found.metadata.get("otherData", {})
        objects = {table: _rows(about, table) for table in OBJECT_TABLES}
        return cls(_environment(about), objects, bool(dict(_figures(about, "ledger"))))

    @classmethod
    def of_inputs(cls, inputs: Rows, prefixes: Collection[str]) -> StatedProcess:
        """The process whose devices have one of these prefixes, in a merged trace with these inputs."""
        own = [each for each in inputs if any(each.get("device_prefix") == prefix for prefix in prefixes)]
        environment: dict[str, Any] = {}
        for each in map(_environment, own):
            known = {key: value for key, value in environment.items() if isinstance(value, dict)}
            texts = {key: {**each[key], **value} for key, value in known.items() if isinstance(each.get(key), dict)}
            environment = {**each, **environment, **texts}
        sources = {text(each.get("source", "")) for each in inputs}
        # Annotations are read as their source has them, those of all processes in one way.
        environment["source"] = sources.pop() if len(sources) == 1 else ""
        environment["simulated"] = any(each.get("simulated") is True for each in inputs)
        objects = {table: _distinct(table, _moved(own, table)) for table in OBJECT_TABLES}
        perhaps_own = own or [each for each in inputs if not isinstance(each.get("device_prefix"), str)]
        return cls(environment, objects, any(dict(_figures(each, "ledger")) for each in perhaps_own))

    def without_objects(self) -> StatedProcess:
        """Another process of the same trace, whose objects are not stated."""
        return self._replace(objects={})


def column_number(value: Any) -> int:
    """``value`` if a column can hold it, which is a whole number of 64 bits; 0 for anything else."""
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else 0


def _provenance_in(about: dict[str, Any]) -> Provenance:
    unread = Counter(dict(_figures(about, "unread")))
    left_out = dict(_figures(about, "drawn"))
    unread.update({reason: left_out[figure] for figure, reason in _NOT_DRAWN.items() if left_out.get(figure)})
    stated = StepOrigin.from_dict(about)
    start_ns, end_ns = stated_window(about) or (0, 0)
    return Provenance(
        collector_version=text(about.get("collector_version", "")),
        source=text(about.get("source", "")),
        simulated=about.get("simulated") is True,
        environment=_environment_texts(about),
        json_environment=_json_keys(about),
        ledger=dict(_figures(about, "ledger")),
        window_start_nanos=start_ns,
        window_end_nanos=end_ns,
        unread=unread,
        rank=stated.rank,
        world_size=stated.world_size,
    )


def _environment_texts(about: dict[str, Any]) -> dict[str, str]:
    return {text(key): text(value) for key, value in _members(about, "environment")}


def _json_keys(about: dict[str, Any]) -> list[str]:
    keys = about.get("json_environment")
    return [text(key) for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _environment(about: dict[str, Any]) -> dict[str, Any]:
    """The environment that the metadata of a trace states, or those of an input."""
    environment = environment_of(_environment_texts(about), _json_keys(about))
    return environment | {"source": text(about.get("source", "")), "simulated": about.get("simulated") is True}


def ledger_of_inputs(inputs: Rows) -> dict[str, int]:
    """The ledger of all inputs of a merged file; its losses alone, where the file does not state all ledgers.

    Figures are summed, except for times from which records are missing and for shares of time: see `of_several`.
    """
    ledgers = [dict(_figures(each, "ledger")) for each in inputs]
    summed: Counter[str] = Counter()
    for ledger in ledgers:
        summed.update(ledger)
    if "nothing_recorded" in summed:
        summed["nothing_recorded"] = min(ledger.get("nothing_recorded", 0) for ledger in ledgers)
    left_out = of_several(zip(ledgers, _delays_ns(inputs), strict=True))
    counts = {name: count for name, count in summed.items() if all(ledgers) or (name in LOSSES and count)}
    return counts | left_out


def _delays_ns(inputs: Rows) -> list[int]:
    """The time from the start of the merged file's window to that of each input's; 0 if one is not known."""
    enclosing = window_of_inputs(inputs)
    windows = [stated_window(each) for each in inputs]
    return [
        window[0] + column_number(each.get("shift_ns")) - enclosing[0] if enclosing and window else 0
        for each, window in zip(inputs, windows, strict=True)
    ]


def window_of_inputs(inputs: Rows) -> Window | None:
    """The window that encloses those of all drawn inputs of a merged file; None if one of them states none."""
    windows = []
    for each in inputs:
        if not each.get("slices"):
            continue
        if (window := stated_window(each)) is None:
            return None
        windows.append([time_ns + column_number(each.get("shift_ns")) for time_ns in window])
    if not windows:
        return None
    enclosing = min(start for start, _ in windows), max(end for _, end in windows)
    return enclosing if is_held(enclosing) else None


def _moved(inputs: Rows, table: str) -> Rows:
    """The rows of a table in some inputs of a merged trace, with the times and correlation ids of its slices."""
    moved = []
    for each in inputs:
        shift_ns, added = column_number(each.get("shift_ns")), column_number(each.get("added_to_correlations"))
        for row in _rows(each, table):
            times = {"start_ns": column_number(row["start_ns"]) + shift_ns} if "start_ns" in row else {}
            ids = {name: row[name] + added for name in _CORRELATIONS if column_number(row.get(name))}
            moved.append({**row, **times, **ids})
    return moved


def _distinct(table: str, rows: Rows) -> Rows:
    """The rows, of which each input of a process has its own for the same objects; the first one of each counts."""
    if table not in _KEYS:
        return rows
    first: dict[tuple[int, ...], dict[str, Any]] = {}
    for row in rows:
        first.setdefault(tuple(column_number(row.get(column)) for column in _KEYS[table]), row)
    return list(first.values())


def _figures(about: dict[str, Any], key: str) -> Iterator[tuple[str, int]]:
    for name, count in _members(about, key):
        if type(count) is int and 0 <= count < 1 << 53:
            yield text(name), count


def _members(about: dict[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    found = about.get(key)
    return found.items() if isinstance(found, dict) else ()


def _rows(about: Any, table: str) -> Rows:
    given: Sequence[Any] | None = about.get(table)
    return [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
