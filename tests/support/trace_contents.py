"""The contents of one trace: its rows, arrows, counters and marks, as written and as each viewer holds them.

`written` reads a Chrome trace, and `in_catapult` and `in_perfetto` convert the viewers' answers; if all three are
equal, the viewer shows exactly the file's contents. `work` derives the required contents from the StepStats alone, so
that an error that writer and viewer share is detected.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

Row = tuple[str, str | int]
"""The names of a process and a thread; the thread's number if it has no name."""
Place = tuple[Row, str, int]
"""A slice: its row, its name, its start in ns."""

# Queries for Perfetto's engine, in Node and in its own page; the answers go to `in_perfetto` in this order.
# Threads, and the rows of a collapsed track, which are not threads.
ROWS_SQL = """with row as (
    select thread_track.id, process.name as process, coalesce(thread.name, thread.tid) as name
    from thread_track join thread using (utid) join process using (upid)
    union all
    select process_track.id, process.name, process_track.name from process_track join process using (upid))"""
PERFETTO_SQL = (
    f"""{ROWS_SQL} select row.process, row.name, slice.name, slice.ts, slice.dur
        from slice join row on slice.track_id = row.id""",
    f"""{ROWS_SQL} select from_row.process, from_row.name, begins.name, begins.ts,
               to_row.process, to_row.name, ends.name, ends.ts
        from flow join slice begins on begins.id = slice_out join slice ends on ends.id = slice_in
        join row from_row on from_row.id = begins.track_id
        join row to_row on to_row.id = ends.track_id""",
    """select process.name, track.name, counter.ts, counter.value
       from counter join process_counter_track track on counter.track_id = track.id
       join process using (upid) order by counter.ts""",
    f"""{ROWS_SQL} select slice.name, slice.ts from slice
        where slice.track_id not in (select id from row)""",
    "select count(*) from flow",
    "select count(*) from counter",
)


@dataclass
class TraceContents:
    """All times are ns since the first moment of the trace."""

    rows: dict[Row, Counter[tuple[str, int, int]]] = field(default_factory=lambda: defaultdict(Counter))
    """Name, start and duration of every slice of a row."""
    arrows: Counter[tuple[Place, Place]] = field(default_factory=Counter)
    counters: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Process and counter -> time and value, in the order of time."""
    marks: Counter[tuple[str, int]] = field(default_factory=Counter)
    devices: dict[Row, str] = field(default_factory=dict, compare=False)
    """A row's device name in StepStats, if the file contains it."""

    @property
    def num_slices(self) -> int:
        """The sum over all rows."""
        return sum(row.total() for row in self.rows.values())

    def with_arrows_as_perfetto_orders_them(self) -> TraceContents:
        """The same contents with each arrow from the slice that began first, because Perfetto's engine orders flows so.

        An arrow to a wait leads back from an activity that began during the wait.
        """
        arrows: Counter[tuple[Place, Place]] = Counter()
        for (begin, end), number in self.arrows.items():
            arrows[(end, begin) if end[2] < begin[2] else (begin, end)] += number
        return replace(self, arrows=arrows)

    def cut_at_zero_bytes(self) -> TraceContents:
        """The names of slices up to a zero byte, where Perfetto ends a text of its own format."""

        def cut(name: str) -> str:
            return name.partition("\0")[0]

        picture = TraceContents(counters=self.counters, marks=self.marks)
        for row, slices in self.rows.items():
            for (name, start_ns, duration_ns), number in slices.items():
                picture.rows[row][cut(name), start_ns, duration_ns] += number
        for ((row, name, at), (other_row, other, other_at)), number in self.arrows.items():
            picture.arrows[(row, cut(name), at), (other_row, cut(other), other_at)] += number
        return picture

    def by_device(self) -> dict[str, Counter[tuple[int, int]]]:
        """Device -> start and duration of its slices in all rows."""
        found: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        for row, slices in self.rows.items():
            for (_, start_ns, duration_ns), number in slices.items():
                found[self.devices[row]][start_ns, duration_ns] += number
        return dict(found)


def events_of(path: Path) -> list[dict[str, Any]]:
    """The events of a Chrome trace, numbers with a point as exact decimals."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.name.endswith(".gz") else content
    events: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return events


def nanoseconds(microseconds: Decimal | int) -> int:
    """Exact conversion; a fraction of a nanosecond is an error."""
    exact = Decimal(microseconds) * 1000
    assert exact == int(exact)
    return int(exact)


def written(path: Path) -> TraceContents:
    """The contents of a Chrome trace. In the file, the ends of an arrow follow their slices."""
    events = events_of(path)
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    picture, begins, ends = TraceContents(), {}, {}
    picture.devices = {
        (processes[event["pid"]], event["args"]["name"]): event["args"]["device"]
        for event in events
        if event["name"] == "thread_name"
    }
    for event in events:
        match event["ph"]:
            case "X":
                row = processes[event["pid"]], threads[event["tid"]]
                start_ns = nanoseconds(event["ts"])
                picture.rows[row][event["name"], start_ns, nanoseconds(event["dur"])] += 1
                place = row, event["name"], start_ns
            case "s":
                assert event["id"] not in begins
                begins[event["id"]] = place
            case "f":
                assert event["id"] not in ends
                ends[event["id"]] = place
            case "C":
                [value] = event["args"].values()
                picture.counters[processes[event["pid"]], event["name"]].append((nanoseconds(event["ts"]), int(value)))
            case "i":
                picture.marks[event["name"], nanoseconds(event["ts"])] += 1
    assert begins.keys() == ends.keys()
    picture.arrows = Counter((begins[number], ends[number]) for number in begins)
    return picture


def tensorflow_in_perfetto(events: Sequence[Mapping[str, Any]]) -> tuple[TraceContents, int, int]:
    """Perfetto's view of TensorFlow's events, by the rules of its importer; slices dropped; arrows dropped.

    Lane 0 of a process is the lane with the process's number (T2). A slice that ends after its enclosing slice is
    dropped (T1). An arrow connects the innermost slices at its ends; an arrow that ends before it begins is dropped,
    which TensorFlow's do if an input was kept until after its reader began.
    """
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    picture, dropped, backwards = TraceContents(), 0, 0
    open_slices: dict[tuple[int, int], list[tuple[int, Place]]] = defaultdict(list)
    begins: dict[int, Place] = {}
    for event in sorted(
        (event for event in events if event["ph"] in "Xst"), key=lambda event: (event["ts"], -event.get("dur", 0))
    ):
        row = names[event["pid"]], event["tid"] or event["pid"]
        stack = open_slices[event["pid"], event["tid"] or event["pid"]]
        if event["ph"] == "X":
            end = event["ts"] + event["dur"]
            while stack and stack[-1][0] <= event["ts"]:
                stack.pop()
            if stack and end > stack[-1][0]:
                dropped += 1
                continue
            stack.append((end, (row, event["name"], 1000 * event["ts"])))
            picture.rows[row][event["name"], 1000 * event["ts"], 1000 * event["dur"]] += 1
        elif event["ph"] == "s":
            begins[event["id"]] = stack[-1][1]
        elif event["id"] in begins:
            picture.arrows[begins[event["id"]], stack[-1][1]] += 1
        else:
            backwards += 1
    picture.counters = _counters(events, names)
    return picture, dropped, backwards


def tensorflow_in_catapult(events: Sequence[Mapping[str, Any]]) -> TraceContents:
    """The view of chrome://tracing of TensorFlow's events, without arrows: all events, from the first time on."""
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    first = min(event["ts"] for event in events if "ts" in event)
    picture = TraceContents()
    for event in events:
        if event["ph"] == "X":
            row = names[event["pid"]], event["tid"]
            picture.rows[row][event["name"], 1000 * (event["ts"] - first), 1000 * event["dur"]] += 1
    picture.counters = _counters(events, names, first)
    return picture


def _counters(
    events: Sequence[Mapping[str, Any]], names: Mapping[int, str], first: int = 0
) -> dict[tuple[str, str], list[tuple[int, int]]]:
    counters: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            [value] = event["args"].values()
            counters[names[event["pid"]], event["name"]].append((1000 * (event["ts"] - first), value))
    return counters


def in_catapult(seen: Mapping[str, Any], step_ns: int = 1) -> TraceContents:
    """The contents of chrome://tracing's model; `seen` is the answer of browser.py.

    Its times are milliseconds in doubles; `step_ns` is the known step of the exact times.
    """

    def exact(milliseconds: float) -> int:
        return step_ns * round(milliseconds * 1e6 / step_ns)

    names = {process["pid"]: process["name"] for process in seen["processes"]}
    threads = {
        (process["pid"], thread["tid"]): thread["tid"] if thread["name"] is None else thread["name"]
        for process in seen["processes"]
        for thread in process["threads"]
    }

    def place(end: Sequence[Any]) -> Place:
        pid, tid, title, start_ms = end
        return (names[pid], threads[pid, tid]), title, exact(start_ms)

    picture = TraceContents()
    for process in seen["processes"]:
        for thread in process["threads"]:
            for title, start_ms, duration_ms, _ in thread["slices"]:
                row = names[process["pid"]], threads[process["pid"], thread["tid"]]
                picture.rows[row][title, exact(start_ms), exact(duration_ms)] += 1
        for counter in process["counters"]:
            [samples] = counter["samples"]
            picture.counters[process["name"], counter["name"]] = [(exact(at), int(value)) for at, value in samples]
    picture.arrows = Counter((place(begin), place(end)) for begin, end in seen["arrows"])
    picture.marks = Counter((title, exact(start_ms)) for title, start_ms in seen["marks"])
    return picture


def in_perfetto(answers: Sequence[Sequence[Sequence[Any]]], units: bool) -> TraceContents:
    """The contents of Perfetto's engine: the answers to PERFETTO_SQL.

    `units`: the file is in Chrome's format, for which Perfetto appends the value's name, our unit, to the counter's
    name, and keeps JSON's escapes in the names of slices.
    """
    slices, flows, counters, marks, [[num_flows]], [[num_values]] = answers

    def text(name: str) -> str:
        return str(json.loads('"' + name.replace('"', '\\"') + '"')) if units else name

    picture = TraceContents()
    for process, thread, name, start_ns, duration_ns in slices:
        picture.rows[process, thread][text(name), int(start_ns), int(duration_ns)] += 1
    for one, row, name, at, other, other_row, other_name, other_at in flows:
        begin = (one, row), text(name), int(at)
        picture.arrows[begin, ((other, other_row), text(other_name), int(other_at))] += 1
    for process, name, at, value in counters:
        picture.counters[process, name.rpartition(" ")[0] if units else name].append((int(at), int(value)))
    picture.marks = Counter((name, int(at)) for name, at in marks)
    assert picture.arrows.total() == num_flows
    assert sum(map(len, picture.counters.values())) == num_values
    return picture


def work(step_stats: Any) -> dict[str, Counter[tuple[int, int]]]:
    """Device -> start and duration in ns of all its work, from the StepStats alone.

    Nodes without a start are left out, and so is `stream:all` if its streams are present.
    """
    names = {device.device for device in step_stats.dev_stats if device.node_stats}
    single = {name.rpartition("/stream:")[0] for name in names if "/stream:" in name and not name.endswith(":all")}
    done: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for device in step_stats.dev_stats:
        if device.device.endswith("/stream:all") and device.device.removesuffix("/stream:all") in single:
            continue
        for node in device.node_stats:
            if node.all_start_nanos:
                done[device.device][node.all_start_nanos, node.all_end_rel_nanos] += 1
            elif node.all_start_micros:
                done[device.device][1000 * node.all_start_micros, 1000 * node.all_end_rel_micros] += 1
    first_ns = min(start_ns for row in done.values() for start_ns, _ in row)
    return {name: Counter({(at - first_ns, ns): n for (at, ns), n in row.items()}) for name, row in done.items()}
