"""The cost of converting CUPTI's buffers into columns, and the cost of our callbacks to the traced program.

Claims: decoding costs about as much as a plain ``memcpy`` of the same bytes, and a twentieth of a Python loop that
makes an object of each record, as cupti-python does; callbacks allocate nothing and return at once.

Decoding and copying run on one core, one after the other, both into warm memory; the figures are processor time. The
input comes from memory (64 MiB, more than most caches) or is one buffer of the default size (4 MiB), which the cache
may hold. Numpy columns include decoding, into cold memory, and the layout of each column in the order of the tables,
with a copy of the input. The loop reads the fields that are used here, from a part of the input; its time is scaled to
as many records. No GPU is needed: the records have the layouts of each CUDA version, and the simulator drives the
callbacks.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import struct
import subprocess
import sys
import time
from collections import deque, namedtuple
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from collector import _native, bench
from collector.bench.benchmark_report import Report, joined

VERSIONS = {"12.4": 12040, "13.0": 13000, "13.5": 13050}
STREAMS = 8
TURNS = 10
LOOP_BYTES = 256 << 10
LETTERS = {"u4": "I", "i4": "i", "u8": "Q"}
NAMES = [ctypes.create_string_buffer(f"_ZN5house{len(f'kernel{i}')}kernel{i}EPfi".encode()) for i in range(64)]

KERNEL = {"kind": (0, "u4"), "start": (16, "u8"), "end": (24, "u8"), "context": (44, "u4"), "stream": (48, "u4"),
          "grid": (52, "i4"), "block": (64, "i4"), "correlation": (92, "u4"), "name": (104, "u8")}  # fmt: skip
MEMCPY = {"kind": (0, "u4"), "bytes": (8, "u8"), "start": (16, "u8"), "end": (24, "u8"), "context": (36, "u4"),
          "stream": (40, "u4"), "correlation": (44, "u4")}  # fmt: skip
API = {"kind": (0, "u4"), "cbid": (4, "u4"), "start": (8, "u8"), "end": (16, "u8"), "thread": (28, "u4"),
       "correlation": (32, "u4")}  # fmt: skip
EXTERNAL = {"kind": (0, "u4"), "external_kind": (4, "u4"), "external_id": (8, "u8"), "correlation": (16, "u4")}
RECORDS = {
    "kernel": (10, KERNEL),
    "memcpy": (1, MEMCPY),
    "driver_api": (4, API),
    "runtime_api": (5, API),
    "external_correlation": (39, EXTERNAL),
}
MIXES = {
    "kernels": ["kernel"],
    "kernels + API": ["driver_api", "runtime_api", "kernel"],
    "annotated step": ["external_correlation", "driver_api", "external_correlation", "runtime_api", "kernel"] * 9
    + ["driver_api", "runtime_api", "memcpy"],
}
"""Mix -> the repeated records, in order."""


def records(mix: list[str], cuda_version: int, num_bytes: int) -> bytes:
    """Return about ``num_bytes`` of records in the layout of CUDA ``cuda_version``."""
    strides = _native.decode_buffer(b"", cuda_version)["strides"]
    offsets = np.cumsum([0] + [strides[record] for record in mix])
    rounds = num_bytes // int(offsets[-1])
    memory = np.zeros((rounds, int(offsets[-1])), np.uint8)
    at = np.arange(rounds, dtype=np.uint64)
    addresses = np.array([ctypes.addressof(name) for name in NAMES], np.uint64)
    for position, record in enumerate(mix):
        kind, fields = RECORDS[record]
        layout = np.dtype(
            {
                "names": list(fields),
                "formats": [code for _, code in fields.values()],
                "offsets": [offset for offset, _ in fields.values()],
                "itemsize": strides[record],
            }
        )
        view = memory[:, offsets[position] : offsets[position + 1]].view(layout)[:, 0]
        view["kind"] = kind
        for name, values in (
            ("start", 10**18 + at * 5000), ("end", 10**18 + at * 5000 + 3000), ("context", 1), ("grid", 64),
            ("stream", 7 + at // 64 % STREAMS), ("block", 256), ("correlation", at), ("bytes", 4096),
            ("name", addresses[at % len(addresses)]), ("cbid", 307), ("thread", 4242), ("external_kind", 5),
            ("external_id", at),
        ):  # fmt: skip
            if name in fields:
                view[name] = values
    return memory.tobytes()


def native_arms(data: bytes, cuda: str) -> dict[str, Callable[[], float]]:
    """Copying and decoding, each of which returns its processor time."""
    turns: dict[str, deque[float]] = {"ns_memcpy": deque(), "ns_decode": deque()}

    def ns_of(which: str) -> Callable[[], float]:
        def call() -> float:
            if not turns[which]:  # several turns at once, because preparing their memory takes longer than the turns
                found = _native.benchmark_decode(data, VERSIONS[cuda], TURNS)
                for each, waiting in turns.items():
                    waiting.extend(map(float, found[each]))
            return turns[which].popleft()

        return call

    return {"memcpy": ns_of("ns_memcpy"), "decode": ns_of("ns_decode")}


def decode(cuda: str, mix: str, mebibytes: int, seconds: float) -> Report:
    """Compare decoding with a plain copy of the same bytes."""
    data = records(MIXES[mix], VERSIONS[cuda], mebibytes << 20)
    return bench.compare(
        native_arms(data, cuda),
        name="decode", parameters={"CUDA": cuda, "records": mix, "MiB": mebibytes}, bytes=len(data),
        gpu=bench.Host(), clock="returned", precision=0.02, min_rounds=20, max_seconds=seconds, seed=1,
    )  # fmt: skip


def structures(mix: str, cuda: str) -> dict[int, tuple[struct.Struct, type[Any], int]]:
    """By kind: the struct that reads a record, the class of its object, and its size."""
    strides = _native.decode_buffer(b"", VERSIONS[cuda])["strides"]
    found = {}
    for record in dict.fromkeys(MIXES[mix]):
        kind, fields = RECORDS[record]
        code, at = "=", 0
        for offset, letter in fields.values():
            code += f"{offset - at}x{LETTERS[letter]}"
            at = offset + int(letter[1:])
        found[kind] = struct.Struct(code), namedtuple(record, fields), strides[record]
    return found


def objects_of(data: bytes, read: Mapping[int, tuple[struct.Struct, type[Any], int]]) -> list[Any]:
    """An object for each record, in Python."""
    kept = []
    at, end = 0, len(data)
    kind_at = struct.Struct("=I").unpack_from
    while at < end:
        reader, make, stride = read[kind_at(data, at)[0]]
        kept.append(make._make(reader.unpack_from(data, at)))
        at += stride
    return kept


def columns_or_objects(cuda: str, mix: str, mebibytes: int, seconds: float) -> Report:
    """Compare decoding with its conversion to numpy columns, and with a Python loop over the same records."""
    data = records(MIXES[mix], VERSIONS[cuda], mebibytes << 20)
    read = structures(mix, cuda)
    turn = sum(_native.decode_buffer(b"", VERSIONS[cuda])["strides"][record] for record in MIXES[mix])
    part = data[: max(1, LOOP_BYTES // turn) * turn]

    def columns() -> float:
        before = time.process_time_ns()
        found = _native.decode_buffer(data, VERSIONS[cuda])
        took = time.process_time_ns() - before
        assert found["counters"]["records_decoded"] == len(data) // turn * len(MIXES[mix])
        return float(took)

    def objects() -> float:
        before = time.process_time_ns()
        kept = objects_of(part, read)
        took = time.process_time_ns() - before
        assert len(kept) == len(part) // turn * len(MIXES[mix])
        return took * len(data) / len(part)

    return bench.compare(
        {"decode": native_arms(data, cuda)["decode"], "columns": columns, "python loop": objects},
        name="columns", parameters={"CUDA": cuda, "records": mix, "MiB": mebibytes}, bytes=len(data),
        gpu=bench.Host(), clock="returned", precision=0.05, min_rounds=10, max_seconds=seconds, seed=1,
    )  # fmt: skip


def record_count(mix: str, cuda: str, num_bytes: float) -> float:
    """The number of records of the mix in that many bytes."""
    strides = _native.decode_buffer(b"", VERSIONS[cuda])["strides"]
    return num_bytes / sum(strides[record] for record in MIXES[mix]) * len(MIXES[mix])


def callbacks_here(launches: int, cuda: str) -> dict[str, Any]:
    """Measure callbacks in this process; heap calls are counted if the counter is preloaded."""
    import collector
    from collector.testing import SimulatedGpu

    with SimulatedGpu(cuda=cuda) as gpu:
        with collector.trace(strict=True, buffer_bytes=16 << 10, max_buffers=1024) as step:
            for _ in range(launches // 100):
                gpu.launch("kernel", count=100)
            gpu.synchronize()
        seen = gpu.statistics()
    counter = ctypes.CDLL(None)
    counted = hasattr(counter, "allocation_counter_windows")
    if counted:
        for name in ("windows", "allocations", "releases"):
            getattr(counter, f"allocation_counter_{name}").restype = ctypes.c_uint64
    return {
        "cuda": cuda,
        "launches": launches,
        "kernels": len(step.kernels),
        "declined": seen.buffers_declined,
        "allocations": counter.allocation_counter_allocations() if counted else None,
        "releases": counter.allocation_counter_releases() if counted else None,
        "request": vars(seen.request_latency),
        "complete": vars(seen.complete_latency),
    }


def callbacks(launches: int, cuda: str) -> dict[str, Any]:
    """Measure callbacks in a separate process, with the counter preloaded if it was built."""
    import collector.testing

    counters = [Path(folder) / "liballocation_counter.so" for folder in collector.testing.__path__]
    environment = dict(os.environ)
    environment.update(("LD_PRELOAD", str(path)) for path in counters if path.exists())
    done = subprocess.run(
        [sys.executable, __file__, "--callbacks-here", cuda, "--launches", str(launches)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def print_tables(report: Report, objects: Report, of_callbacks: list[dict[str, Any]]) -> None:
    """Print the results."""
    print(f"{report.environment['gpu']}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| CUDA | records | input | decode / memcpy | 95 % | verdict | decode ns per record | M records/s | rounds |")
    print("| --- " * 9 + "|")
    for each, verdict in zip(report.comparisons, report.verdicts, strict=True):
        cuda, mix, mebibytes = each.parameters.values()
        ns = each.interval("decode").estimate / record_count(mix, cuda, each.bytes or 0)
        decoded = each.ratios["decode"].interval
        print(
            f"| {cuda} | {mix} | {mebibytes} MiB | {decoded.estimate:.2f} | {decoded.low:.2f}..{decoded.high:.2f} "
            f"| {verdict['decode']} | {ns:.1f} | {1e3 / ns:.1f} | {each.rounds} |"
        )
    print("\n| CUDA | records | decode ns per record | numpy columns | of decode | a Python loop | of decode |")
    print("| --- " * 7 + "|")
    for each in objects.comparisons:
        cuda, mix, _ = each.parameters.values()
        cells = [f"{each.interval('decode').estimate / record_count(mix, cuda, each.bytes or 0):.1f}"]
        for arm, ratio in each.ratios.items():
            ns = each.interval(arm).estimate / record_count(mix, cuda, each.bytes or 0)
            cells += [f"{ns:.1f}", f"{ratio.interval.low:.1f}..{ratio.interval.high:.1f}"]
        print(f"| {cuda} | {mix} | {' | '.join(cells)} |")
    print("\n| CUDA | callback | calls | p50 ns | p99 ns | p99.99 ns | max ns | heap calls |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in of_callbacks:
        heap = "not counted" if row["allocations"] is None else row["allocations"] + row["releases"]
        for which in ("request", "complete"):
            one = row[which]
            print(
                f"| {row['cuda']} | buffer {which} | {one['count']} | {one['p50_ns']} | {one['p99_ns']} "
                f"| {one['p9999_ns']} | {one['max_ns']} | {heap} |"
            )


def main() -> None:
    """Measure, print, and write JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each row of the first table")
    parser.add_argument("--launches", type=int, default=1_000_000, help="for the callbacks")
    parser.add_argument("--mebibytes", type=int, action="append", help="sizes of the inputs (default: 64 and 4)")
    parser.add_argument("--json", type=Path, help="also write the report here, with every sample")
    parser.add_argument("--callbacks-here", metavar="CUDA", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.callbacks_here:
        print(json.dumps(callbacks_here(options.launches, options.callbacks_here)))
        return
    rows = [(cuda, mix, mebibytes) for mebibytes in options.mebibytes or (64, 4) for mix in MIXES for cuda in VERSIONS]
    report = joined([decode(*row, options.seconds) for row in rows])
    objects = joined([columns_or_objects("13.0", mix, 4, options.seconds) for mix in MIXES])
    print_tables(report, objects, [callbacks(options.launches, cuda) for cuda in ("12.4", "13.0")])
    if options.json:
        joined([report, objects]).save(options.json)


if __name__ == "__main__":
    main()
