"""Golden launch lists: the activities of a step in order on each stream, compared with a file beside the test."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.files.atomic_files import atomic_write
from collector.recording.kind_names import copy_kind_name
from collector.text.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from collector.recording.recording import Recording
    from collector.recording.table import Table

FOLDER = "__gpu_snapshots__"
FORMAT = "collector-gpu-snapshot"
VERSION = 1
_MOST_LINES = 60


class SnapshotError(Exception):
    """A snapshot is missing or cannot be read. The text contains the file and the remedy."""


@dataclass(frozen=True)
class Snapshot:
    """The activities of a step on each stream."""

    devices: tuple[str, ...]
    """The models of the devices used, in the order of the streams' first use."""
    streams: tuple[tuple[str, ...], ...]
    """For each stream, in the order of first use: one line per operation, in order."""

    def names_only(self) -> Snapshot:
        """The same snapshot without launch shapes."""
        return Snapshot(self.devices, tuple(tuple(line.partition(" grid=")[0] for line in s) for s in self.streams))


def snapshot_of(recording: Recording) -> Snapshot:
    """Return the launch list of a recording.

    Streams are numbered in the order of their first launch, because CUDA's ids differ from run to run.
    """
    operations: list[tuple[int, int, tuple[int, int, int], str]] = []
    for table, lines in (
        (recording.kernels, _kernel_lines(recording.kernels)),
        (recording.memcpys, _copy_lines(recording.memcpys)),
        (recording.memsets, [f"memset {num_bytes} bytes" for num_bytes in recording.memsets.num_bytes.tolist()]),
    ):
        keys = zip(table.device_id.tolist(), table.context_id.tolist(), table.stream_id.tolist(), strict=True)
        launched = _launched_ns(recording, table)
        operations += zip(launched, table.start_ns.tolist(), keys, lines, strict=True)
    models = recording.environment.get("devices", {})
    first_use: dict[tuple[int, int, int], None] = dict.fromkeys(key for _, _, key, _ in sorted(operations))
    operations.sort(key=lambda operation: operation[1])
    streams = tuple(tuple(line for _, _, of, line in operations if of == key) for key in first_use)
    devices = dict.fromkeys(str(models.get(device, models.get(str(device), "unknown"))) for device, _, _ in first_use)
    return Snapshot(tuple(devices), streams)


def _launched_ns(recording: Recording, table: Table) -> list[int]:
    rows = recording.launch_rows(table.correlation_id)
    calls = recording.api_calls.start_ns
    known = calls[np.maximum(rows, 0)] if len(calls) else table.start_ns
    times: list[int] = np.where(rows >= 0, known, table.start_ns).tolist()
    return times


def _kernel_lines(kernels: Table) -> list[str]:
    shapes = zip(
        *(kernels.columns[f"{what}_{axis}"].tolist() for what in ("grid", "block") for axis in "xyz"), strict=True
    )
    return [
        f"{name} grid={gx},{gy},{gz} block={bx},{by},{bz}"
        for name, (gx, gy, gz, bx, by, bz) in zip(kernels.names(), shapes, strict=True)
    ]


def _copy_lines(copies: Table) -> list[str]:
    pairs = zip(copies.copy_kind.tolist(), copies.num_bytes.tolist(), strict=True)
    return [f"memcpy {copy_kind_name(k)} {num_bytes} bytes" for k, num_bytes in pairs]


def save_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write ``snapshot`` completely or not at all.

    Raises:
        collector.OutputError: it cannot be written.
        OSError: its folder cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "devices": list(snapshot.devices),
        "streams": [list(stream) for stream in snapshot.streams],
    }
    with atomic_write(path) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def load_snapshot(path: Path) -> Snapshot:
    """Read a file that `save_snapshot` wrote.

    Raises:
        SnapshotError: it is missing, or is not a snapshot.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SnapshotError(f"there is no snapshot {path}: run once with --gpu-snapshot-update to write it") from None
    except OSError as error:
        raise SnapshotError(f"the snapshot {path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise _corrupt(path, str(error)) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _corrupt(path, f"it is not a {FORMAT}")
    if content.get("version") != VERSION:
        raise _corrupt(path, f"it has version {content.get('version')!r}, this one reads {VERSION}")
    devices: Any = content.get("devices")
    streams: Any = content.get("streams")
    if not _is_texts(devices) or not isinstance(streams, list) or not all(map(_is_texts, streams)):
        raise _corrupt(path, "its devices or streams are not lists of text")
    return Snapshot(tuple(devices), tuple(tuple(stream) for stream in streams))


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _corrupt(path: Path, why: str) -> SnapshotError:
    return SnapshotError(
        f"the snapshot {path} is damaged ({why}): restore it, or rewrite it with --gpu-snapshot-update"
    )


def compare(golden: Snapshot, now: Snapshot) -> tuple[str, str]:
    """Return the differences and a remark about parts that could not be compared; each may be ``""``."""
    remark = ""
    if golden.devices != now.devices:
        remark = (
            f"the snapshot is from another GPU model ({', '.join(golden.devices) or 'none'}; here: "
            f"{', '.join(now.devices) or 'none'}): only names, bytes and order are compared, not launch shapes"
        )
        golden, now = golden.names_only(), now.names_only()
    if golden.streams == now.streams:
        return "", remark
    difference = list(difflib.unified_diff(_text(golden), _text(now), "snapshot", "this run", lineterm="", n=2))
    if len(difference) > _MOST_LINES:
        difference[_MOST_LINES:] = [counted("... and {:,} more line[|s]", len(difference) - _MOST_LINES)]
    return "\n".join(difference), remark


def _text(snapshot: Snapshot) -> list[str]:
    return [
        line
        for number, stream in enumerate(snapshot.streams)
        for line in (f"stream {number}:", *(f"  {operation}" for operation in stream))
    ]
