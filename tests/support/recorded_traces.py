"""Recorded GPU traces as lists of activities, to compare with the recordings' own figures (counts.json).

Independent of the package's readers on purpose. The rules are those of the recordings' README: JSON times are decimal
microseconds, never binary floats, rounded half-even to nanoseconds; no event is dropped for unusual values.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

from collector.testing.simulator.operations import COPY_KINDS as COPY_KIND_NUMBERS

COPY_KINDS = tuple(COPY_KIND_NUMBERS)
KERNEL, MEMCPY, MEMSET = "kernel", "memcpy", "memset"
CATEGORIES = {"kernel": KERNEL, "gpu_memcpy": MEMCPY, "memcpy": MEMCPY, "gpu_memset": MEMSET, "memset": MEMSET}
CALL_CATEGORIES = ("cuda_runtime", "runtime", "cuda_driver", "driver")


@dataclass(frozen=True)
class Activity:
    """One kernel, memcpy or memset of a recording."""

    kind: str
    name: str
    start_ns: int
    end_ns: int
    device: str
    stream: str
    """In the form of counts.json: a number, or `memcpy` in a TensorFlow timeline."""
    context: int | None = None
    correlation: tuple[int, int] | None = None
    """Process (0 if the file has only one) and correlation id."""
    num_bytes: int | None = None
    copy_kind: str = "Unknown"
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Trace:
    """A recording's activities, and the API calls by (process, correlation id): start and end."""

    activities: list[Activity]
    calls: dict[tuple[int, int], tuple[int, int]]

    def of(self, kind: str) -> list[Activity]:
        return [activity for activity in self.activities if activity.kind == kind]


def read(path: Path) -> Trace:
    """The recording in a file of the shared folder, by the ending of its name."""
    if path.name.endswith(".sqlite.gz"):
        return read_nsys(path)
    if path.name.endswith(".xplane.pb.gz"):
        return read_xspace(path)
    events = read_events(path)
    rows = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    if any(str(name).endswith("/stream:all Compute") for name in rows.values()):
        return read_tensorflow(events, rows)
    return read_kineto(events)


def nanoseconds(microseconds: Any) -> int:
    """Whole ns of decimal µs, given as JSON number or text."""
    if isinstance(microseconds, int):
        return microseconds * 1000
    return int((Decimal(microseconds) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def copy_kind_of(name: str) -> str:
    """Direction in an event's name, such as `Memcpy HtoD (Pageable -> Device)` or `MemcpyH2D`."""
    found = re.search(r"([HDAP])(?:to|2)([HDAP])", name)
    return f"{found[1]}to{found[2]}" if found else "Unknown"


def shape_of(value: Any) -> tuple[int, int, int] | None:
    return (value[0], value[1], value[2]) if isinstance(value, list) and len(value) == 3 else None


# -- Chrome trace JSON ------------------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """Decompressed as far as the stream is intact, with bytes that are not UTF-8 replaced."""
    unzipped = zlib.decompressobj(wbits=31).decompress(path.read_bytes())
    return unzipped.decode("utf-8", errors="replace")


def read_events(path: Path) -> list[dict[str, Any]]:
    """The trace's events; for a truncated file, the complete ones."""
    text = read_text(path)
    try:
        root = json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError:
        return list(whole_events(text))
    events = root["traceEvents"] if isinstance(root, dict) else root
    return [event for event in events if isinstance(event, dict)]


def whole_events(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(parse_float=Decimal)
    start = text.find('"traceEvents"')
    position = text.index("[", max(start, 0)) + 1
    separators = re.compile(r"[\s,]*")
    while True:
        position = separators.match(text, position).end()  # type: ignore[union-attr]
        try:
            event, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            return
        yield event


def read_kineto(events: list[dict[str, Any]]) -> Trace:
    activities: list[Activity] = []
    calls: dict[tuple[int, int], tuple[int, int]] = {}
    for event in events:
        category = str(event.get("cat", "")).lower()
        if event.get("ph") != "X":
            continue
        args = event.get("args") or {}
        start = nanoseconds(event["ts"])
        end = start + nanoseconds(event.get("dur", 0))
        correlation = args.get("correlation")
        if category in CALL_CATEGORIES and correlation is not None:
            calls.setdefault((0, int(correlation)), (start, end))
        if category not in CATEGORIES:
            continue
        context = args.get("context")
        activities.append(
            Activity(
                kind=CATEGORIES[category],
                name=event["name"],
                start_ns=start,
                end_ns=end,
                device=str(args.get("device", event["pid"])),
                stream=str(args.get("stream", event["tid"])),
                context=context if isinstance(context, int) else None,
                correlation=None if correlation is None else (0, int(correlation)),
                num_bytes=args.get("bytes"),
                copy_kind=copy_kind_of(event["name"]),
                grid=shape_of(args.get("grid")),
                block=shape_of(args.get("block")),
            )
        )
    return Trace(activities, calls)


def read_tensorflow(events: list[dict[str, Any]], rows: dict[int, str]) -> Trace:
    """TensorFlow's own timeline: kernels in the `stream:N` rows, copies in the `memcpy` row."""
    activities: list[Activity] = []
    for event in events:
        row = re.search(r"/gpu:(\d+)/(?:stream:(\d+)|(memcpy)) Compute$", rows.get(event["pid"], ""))
        if event.get("ph") != "X" or row is None:
            continue
        is_copy = row[3] is not None
        if not is_copy and event["name"].startswith("MEMCPY"):
            continue
        start = nanoseconds(event["ts"])
        activities.append(
            Activity(
                kind=MEMCPY if is_copy else KERNEL,
                name=event["name"],
                start_ns=start,
                end_ns=start + nanoseconds(event.get("dur", 0)),
                device=row[1],
                stream=row[2] or "memcpy",
                copy_kind=copy_kind_of(event["name"]) if event["name"].startswith("MEMCPY") else "Unknown",
            )
        )
    return Trace(activities, {})


# -- Nsight Systems' SQLite -------------------------------------------------------------------------------------------


def process_of(global_id: int | None) -> int:
    return 0 if global_id is None else (global_id >> 24) & 0xFFFFFF


def database_in(path: Path) -> sqlite3.Connection:
    """The database of a compressed file, in memory: Python 3.10 can read one from a file only."""
    database = sqlite3.connect(":memory:")
    with tempfile.NamedTemporaryFile() as file:
        file.write(gzip.decompress(path.read_bytes()))
        file.flush()
        with contextlib.closing(sqlite3.connect(file.name)) as stored:
            stored.backup(database)
    return database


def read_nsys(path: Path) -> Trace:
    database = database_in(path)
    database.row_factory = sqlite3.Row
    tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    texts = dict(database.execute("SELECT id, value FROM StringIds").fetchall())
    activities: list[Activity] = []
    for kind in (KERNEL, MEMCPY, MEMSET):
        table = f"CUPTI_ACTIVITY_KIND_{kind.upper()}"
        if table not in tables:
            continue
        for row in database.execute(f"SELECT * FROM {table} ORDER BY rowid"):
            columns = dict(row)
            shaped = kind == KERNEL
            activities.append(
                Activity(
                    kind=kind,
                    name=texts[columns["demangledName"]] if shaped else kind,
                    start_ns=columns["start"],
                    end_ns=columns["end"],
                    device=str(columns["deviceId"]),
                    stream=str(columns["streamId"]),
                    context=columns.get("contextId"),
                    correlation=(process_of(columns.get("globalPid")), columns["correlationId"]),
                    num_bytes=columns.get("bytes"),
                    copy_kind=COPY_KINDS[columns["copyKind"]] if kind == MEMCPY else "Unknown",
                    grid=(columns["gridX"], columns["gridY"], columns["gridZ"]) if shaped else None,
                    block=(columns["blockX"], columns["blockY"], columns["blockZ"]) if shaped else None,
                )
            )
    has_processes = any(activity.correlation and activity.correlation[0] for activity in activities)
    calls = {}
    for row in database.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY rowid"):
        process = process_of(row["globalTid"]) if has_processes else 0
        calls.setdefault((process, row["correlationId"]), (row["start"], row["end"]))
    database.close()
    return Trace(activities, calls)


# -- Proton's trees ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summed:
    """The data of one kernel in a tree without single launches."""

    device: str
    name: str
    count: int
    total_ns: int


def read_proton(path: Path) -> list[Summed]:
    """Nodes that ran."""
    found: list[Summed] = []
    pending = [node for node in json.loads(read_text(path), parse_float=Decimal) if "children" in node]
    while pending:
        node = pending.pop()
        pending.extend(node["children"])
        metrics = node["metrics"]
        if metrics.get("count") and "time (ns)" in metrics:
            device = f"{metrics['device_type']} {metrics['device_id']}"
            found.append(Summed(device, node["frame"]["name"], int(metrics["count"]), int(metrics["time (ns)"])))
    return found


# -- XSpace -----------------------------------------------------------------------------------------------------------


def read_xspace(path: Path) -> Trace:
    from collector.protos import xplane_pb2

    space = xplane_pb2.XSpace.FromString(gzip.decompress(path.read_bytes()))
    activities: list[Activity] = []
    for plane in space.planes:
        device = re.fullmatch(r"/device:GPU:(\d+)", plane.name)
        if device is None:
            continue
        for line in plane.lines:
            stream = re.match(r"Stream #(\d+)", line.name)
            if stream is None:
                continue
            for event in line.events:
                stats = {
                    plane.stat_metadata[stat.metadata_id].name: plane.stat_metadata[stat.ref_value].name
                    if stat.WhichOneof("value") == "ref_value"
                    else getattr(stat, str(stat.WhichOneof("value")))
                    for stat in event.stats
                }
                details = re.findall(r"(\w+):([\d,]+)", stats.get("kernel_details") or stats["memcpy_details"])
                shapes = {key: tuple(int(part) for part in value.split(",")) for key, value in details}
                is_kernel = "kernel_details" in stats
                start = to_whole_ns(line.timestamp_ns * 1000 + event.offset_ps)
                name = plane.event_metadata[event.metadata_id].name
                activities.append(
                    Activity(
                        kind=KERNEL if is_kernel else MEMCPY,
                        name=name,
                        start_ns=start,
                        end_ns=start + to_whole_ns(event.duration_ps),
                        device=device[1],
                        stream=stream[1],
                        correlation=(0, stats["correlation_id"]),
                        num_bytes=None if is_kernel else shapes["size"][0],
                        copy_kind=copy_kind_of(name.replace("Memcpy", "")),
                        grid=shapes.get("grid"),  # type: ignore[arg-type]
                        block=shapes.get("block"),  # type: ignore[arg-type]
                    )
                )
    return Trace(activities, {})


def to_whole_ns(picoseconds: int) -> int:
    return int((Decimal(picoseconds) / 1000).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
