"""Passes damaged files to the readers: each input must give a trace or one clear error, never anything else.

    python fuzz/fuzz_readers.py --list                          print the readers: one for each format that is read
    python fuzz/fuzz_readers.py READER [libFuzzer options]
    python fuzz/fuzz_readers.py --replay                        run the kept corpus only (needs no atheris)

Inputs that once revealed a defect are kept in fuzz/corpus/READER; libFuzzer grows its own corpus in the folder named on
its command line, if any.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

INSTRUMENTED = ["collector", "google.protobuf.text_format", "zipfile", "numpy.lib.format", "numpy.lib._format_impl"]
"""Python modules whose branches guide the fuzzer; compiled code guides it only through their use of its results."""

GZIP = "gzip"
"""The compression that every format supports."""

SEGMENTS = "segments"
"""A journal in several files, of which `write_segments.py` has written a whole one."""


def readers() -> list[str]:
    """The module of each format that is read, without ``_format``; and `GZIP` and `SEGMENTS`."""
    from collector.formats.registry import readable

    modules = (each.read.__module__ for each in readable() if each.read is not None)
    return [*dict.fromkeys(module.rpartition(".")[2].removesuffix("_format") for module in modules), GZIP, SEGMENTS]


@cache
def _small_recording() -> bytes:
    """Kernels of which columns are packed in every way, and nothing else."""
    import numpy as np

    from collector.recording.capture import empty_capture
    from collector.recording.recording import Recording

    capture = empty_capture()
    kernels = {name: np.zeros(40, values.dtype) for name, values in capture["tables"]["kernels"].items()}
    kernels["start_ns"] = 10**18 + 1000 * np.arange(40)
    kernels["start_ns"][20:] += 10**9
    kernels["end_ns"] = kernels["start_ns"] + 7 * np.arange(40)
    kernels["grid_x"] += np.arange(40, dtype=np.int32) % 3
    capture["tables"]["kernels"], capture["strings"] = kernels, ["kernel"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.gpurec"
        Recording.from_capture(capture).save(path)
        return path.read_bytes()


def _damaged_recording(damage: bytes) -> bytes:
    """A valid recording with damage in one of its members, or in the file, according to the first bytes.

    The first byte chooses a member, whose checksum is then computed from its damaged content; a number beyond the
    members damages the file itself. The next two bytes are the position, and the fourth chooses whether the rest is
    inserted, cut off or written over.
    """
    import zipfile

    which, at, how, rest = damage[:1], int.from_bytes(damage[1:3], "big"), damage[3:4], damage[4:]
    whole = _small_recording()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members, key=lambda name: (name != "meta.json", name))
    number = which[0] if which else 0
    if number % 8 == 7:
        return _damaged(whole, at, how, rest)
    name = names[0] if number % 2 == 0 else names[number // 2 % len(names)]
    members[name] = _damaged(members[name], at, how, rest)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content)
    return written.getvalue()


def _damaged_journal(damage: bytes) -> bytes:
    """A valid journal with one more frame of the given bytes or, if the first byte is odd, with damage in it."""
    whole = (HERE / "two_steps.journal").read_bytes()
    if damage[:1] and damage[0] & 1:
        return _damaged(whole, int.from_bytes(damage[1:3], "big"), damage[3:4], damage[4:])
    return whole + struct.pack("<4sIQ", b"FRAM", 0, len(damage[1:])) + damage[1:]


_FRAME, _BLOCK = struct.Struct("<4sIQ"), struct.Struct("<IIQ")  # mark or kind, flags or count, bytes


@cache
def _whole_segments() -> tuple[tuple[tuple[int, tuple[tuple[int, int, bytes], ...]], ...], ...]:
    """The frames of each segment: their flags, and the kind, count and content of their blocks."""
    segments = []
    for path in sorted((HERE / "segments.journal").iterdir()):
        data, at, frames = path.read_bytes(), 8, []
        while at < len(data):
            _, flags, num_bytes = _FRAME.unpack_from(data, at)
            at, end, blocks = at + _FRAME.size, at + _FRAME.size + num_bytes, []
            while at < end:
                kind, count, num_bytes = _BLOCK.unpack_from(data, at)
                at += _BLOCK.size + num_bytes
                blocks.append((kind, count, data[at - num_bytes : at]))
            frames.append((flags, tuple(blocks)))
        segments.append(tuple(frames))
    return tuple(segments)


def _damaged_segments(damages: bytes) -> list[bytes]:
    """The segments of a valid journal with up to eight damages, whose lengths are correct unless they are the damage.

    Of each damage the first three bytes choose a segment, a frame and a block of it, the next two a position in that
    block, and the sixth what happens there; as many bytes as the seventh says are then written or inserted.
    """
    segments = [[[flags, [list(block) for block in blocks]] for flags, blocks in each] for each in _whole_segments()]
    cuts: dict[int, int] = {}
    removed, doubled = set[int](), set[int]()
    for _ in range(8):
        if len(damages) < 7:
            break
        segment, frame_at, block_at, high, low, how, length = damages[:7]
        rest, damages = damages[7 : 7 + length % 16], damages[7 + length % 16 :]
        segment %= len(segments)
        frames = segments[segment]
        if not frames:
            continue
        blocks = frames[frame_at % len(frames)][1]
        place = (high << 8) | low
        if how % 12 < 6 and blocks:
            block = blocks[block_at % len(blocks)]
            at = place % (len(block[2]) + 1)
            behind = {0: at, 1: len(block[2]), 2: at + 1 + length // 16}.get(how % 12, at + len(rest))
            block[2] = block[2][:at] + rest + block[2][behind:]
            if how % 12 == 3:
                block[1] = place
            if how % 12 == 4:
                block[0] = place % 12
        elif how % 12 == 6 and blocks:
            del blocks[block_at % len(blocks)]
        elif how % 12 == 7 and blocks:
            blocks.append(list(blocks[block_at % len(blocks)]))
        elif how % 12 == 8:
            del frames[frame_at % len(frames)]
        elif how % 12 == 9:
            other = segments[block_at % len(segments)]
            frames.append(other[frame_at % len(other)] if other else [place & 1, []])
        elif how % 12 == 10:
            cuts[segment] = place
        else:
            (removed if place & 1 else doubled).add(segment)
    written = [_journal_file(frames) for frames in segments]
    for segment, place in cuts.items():
        written[segment] = written[segment][: place % (len(written[segment]) + 1)]
    numbers = [
        number for number in range(len(written)) for _ in range(1 + (number in doubled)) if number not in removed
    ]
    return [written[number] for number in numbers]


def _journal_file(frames: list[Any]) -> bytes:
    parts = [b"GPUJRNL\2"]
    for flags, blocks in frames:
        body = b"".join(_BLOCK.pack(kind, count, len(content)) + content for kind, count, content in blocks)
        parts.append(_FRAME.pack(b"FRAM", flags, len(body)) + body)
    return b"".join(parts)


@cache
def _small_export() -> bytes:
    """An export of Nsight Systems: a kernel with its call, and a range."""
    import sqlite3

    tables = {
        "StringIds": ("id INTEGER, value TEXT", [(1, "k"), (2, "cudaLaunchKernel_v7000")]),
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, "
            "demangledName INTEGER",
            [(10, 15, 0, 7, 3, 1)],
        ),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (
            "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER",
            [(5, 8, 16777217, 3, 2)],
        ),
        "NVTX_EVENTS": (
            "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER",
            [(1, 20, 59, "range", 16777217, None)],
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.sqlite"
        database = sqlite3.connect(path)
        with database:
            database.execute("PRAGMA page_size = 512")
            for name, (columns, rows) in tables.items():
                database.execute(f"CREATE TABLE {name} ({columns})")
                database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        database.close()
        return path.read_bytes()


def _damaged_export(damage: bytes) -> bytes:
    """A valid export with damage at the position in the first two bytes, of the type in the third."""
    return _damaged(_small_export(), int.from_bytes(damage[:2], "big"), damage[2:3], damage[3:])


def _damaged(content: bytes, at: int, how: bytes, rest: bytes) -> bytes:
    at %= len(content) + 1
    behind = {0: at, 1: len(content)}.get(how[0] % 3 if how else 2, at + len(rest))
    return content[:at] + rest + content[behind:]


def _damaged_gzip(data: bytes) -> bytes:
    """The bytes from the third on compressed, in two streams if the second is odd, damaged as the first two choose."""
    head, content = data[:2].ljust(2, b"\0"), data[2:]
    half = len(content) // 2 if head[1] & 1 else len(content)
    packed = b"".join(gzip.compress(part, mtime=0) for part in (content[:half], content[half:]) if part)
    at = head[0] * len(packed) // 256
    damages = (packed, packed[:at], packed[:at] + bytes([head[1]]) + packed[at + 1 :], packed + content[:8])
    return damages[head[1] >> 1 & 3]


def _as_text(data: bytes) -> bytes:
    """The bytes as proto text."""
    return data if data.lstrip().startswith((b"dev_stats", b"step_stats")) else b"dev_stats {" + data


WRAPPED: dict[str, Callable[[bytes], bytes]] = {
    GZIP: _damaged_gzip,
    "gpurec": _damaged_recording,
    "journal": _damaged_journal,
    "nsys": _damaged_export,
    "stepstats_text": _as_text,
}
"""Conversions of the fuzzer's bytes for formats whose outermost layer they would rarely pass."""

CHROME_TOKENS = r"""{"traceEvents":[|"ph":"X"|"ph":"M"|"ph":"s"|"ph":"C"|"ts":|"dur":|NaN|1e999|"cat":"kernel"
    |"cat":"Op"|"args":{|"otherData":{"base_time_ns":"1"|]}|-0.0|"\ud800"|"name":"process_name"| Compute|"stream":
    |"External id":|"correlation":|[[[[[[[[|99999999999999999999|9223372036854775807|"baseTimeNanoseconds":"""

TOKENS = {
    "stepstats_text": r"""dev_stats {|device:|node_stats {|node_name:|all_start_micros:|thread_names {|key:|value:|}
        |-1|#|timeline_label:|output {|tensor_description {|dtype: DT_FLOAT|1e400|memory {|allocation_records {
        |\u00e9|\377|nan|inf|[type.googleapis.com/x] {|step_stats {""",
    "collector_timeline": CHROME_TOKENS,
    "profiler_timeline": CHROME_TOKENS,
    "tensorflow_timeline": CHROME_TOKENS,
    "xprof_trace": CHROME_TOKENS + '|"/device:GPU:0"|Stream #7(Compute)|"correlation_id":|memcpy_details|tf_op',
    "proton_timeline": CHROME_TOKENS + '|GPU Stream 7|"call_stack":["ROOT"|"metrics":{"flops":"3"}|"cat":"scope"',
    "proton": r"""[{"children":[|"frame":{"name":|"metrics":{|"time (ns)":|"count":|"device_id":"0"|"flops16":|"bytes":
        |1e999999999|-0.0|NaN|null|{"CUDA":{"0":{|"num_sms":|99999999999999999999|"\ud800\u0000"|[[[[[[[[""",
    "journal": 'kernels|api_calls|annotations|memory_operations|clock.cupti_start_ns|records_decoded|[0,0,"",[],[]]',
    "nsys": "CREATE TABLE |INTEGER|TEXT|StringIds|NVTX_EVENTS|CUPTI_ACTIVITY_KIND_KERNEL|globalTid|eventType",
    "gpurec": """"strings"|"clock"|"counters"|"version"|"environment"|"details"|null|-1|1e999|'descr': '<i8'|[[[[
        |'shape': (1,)|'shape': (99999999999,)|'fortran_order': True|object|<f8|"columns"|"rows"|"value"|"base"
        |"before"|"type"|"column"|"jumps":""",
}
"""Typical parts of a format's files, by reader, which libFuzzer inserts."""


def mutated_message(data: bytes, max_length: int, seed: int) -> bytes:
    """Wire bytes with one field changed, doubled, moved or removed, at any depth; enclosing lengths stay correct."""
    import atheris

    from collector.stepstats.salvage import BYTES, WireError, encode_field, fields

    chance = random.Random(seed)
    try:
        found = list(fields(memoryview(data)))
    except WireError:
        found = []
    if not found or chance.random() < 0.2:
        return bytes(atheris.Mutate(data, max_length))
    at = chance.randrange(len(found))
    parts = [encode_field(item) for item in found]
    item = found[at]
    action = chance.randrange(6)
    if action == 0:
        parts.insert(chance.randrange(len(parts) + 1), parts[at])
    elif action == 1:
        del parts[at]
    elif item.wire_type == BYTES:
        changed = mutated_message(bytes(item.payload), max(max_length - len(data) + len(item.payload), 1), seed + 1)
        parts[at] = encode_field(item._replace(payload=memoryview(changed)))
    else:
        parts[at] = bytes(atheris.Mutate(parts[at], 12))
    return b"".join(parts)[:max_length]


def check(reader: str, data: bytes, folder: Path) -> None:
    """Read `data` as a file and draw it; raise every exception except the one error that a reader may raise."""
    from collector.analysis import ops
    from collector.errors import InvalidFileError
    from collector.formats.loading import load
    from collector.formats.xspace import write_xspace
    from collector.timeline import chrome_trace

    path = folder / "fuzzed.bin"
    given = path
    if reader == SEGMENTS:
        given = folder / "fuzzed.journal"
        shutil.rmtree(given, ignore_errors=True)
        given.mkdir()
        for number, content in enumerate(_damaged_segments(data), 1):
            (given / f"{number:06}.journal").write_bytes(content)
        with contextlib.suppress(InvalidFileError):
            load(given, window=(0.2, 0.9)).recording.save(folder / "part.gpurec")
    else:
        path.write_bytes(WRAPPED.get(reader, bytes)(data))
    try:
        trace = load(given)
    except InvalidFileError as error:
        message = str(error)
        if "\n" in message or not message.startswith(str(given)):
            raise AssertionError(f"not one line that names the file: {message!r}") from error
        return
    if bool(trace.warning) != bool(trace.skipped or trace.cut_at is not None):
        raise AssertionError(f"skipped {trace.skipped}, but the warning is {trace.warning!r}")
    if trace.sums is not None:
        ops(trace).to_json()
        trace.summary()
        return
    path.write_bytes(trace.serialized())
    # The bytes of a RunMetadata whose devices have no names can also be those of a StepStats with another device.
    is_told_apart = all(device.device for device in trace.step_stats.dev_stats)
    if is_told_apart and load(path).step_stats != trace.step_stats:
        raise AssertionError("read back, the step that was written is another")
    json.loads(chrome_trace(trace.run_metadata), parse_constant=_refuse)
    write_xspace(trace.serialized(), io.BytesIO())


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def seeds() -> dict[str, list[bytes]]:
    """Small valid files as the fuzzer's seeds, by reader; at least one for each."""
    from google.protobuf import text_format

    from collector.formats.xspace import write_xspace
    from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
    from collector.timeline import chrome_trace

    node = NodeExecStats(node_name="a:k", timeline_label="k regs:1", all_start_micros=1_700_000_000_000_000)
    step = StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=[node], thread_names={1: "t"})])
    metadata = RunMetadata(step_stats=step)
    profile = io.BytesIO()
    write_xspace(metadata.SerializeToString(), profile)
    kineto = (
        b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"stream":7}}]}'
    )
    timeline = (
        b'[{"name":"process_name","ph":"M","pid":1,"args":{"name":"/cpu:0 Compute"}},'
        b'{"ph":"X","cat":"Op","name":"Add","pid":1,"tid":0,"ts":1,"dur":2,"args":{"name":"a","op":"Add","input0":"b"}}'
    )
    xprof = (
        b'{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}},'
        b'{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"Stream #7(Compute)"}},'
        b'{"ph":"X","name":"k","pid":1,"tid":2,"ts":1,"dur":2,"args":{"correlation_id":3}}]}'
    )
    scopes = (
        b'{"traceEvents":[{"ph":"M","name":"thread_name","pid":0,"tid":200007,"args":{"name":"GPU Stream 7"}},'
        b'{"ph":"X","cat":"metric","name":"a: <flops, 3>","pid":0,"tid":0,"ts":1,"dur":2,'
        b'"args":{"call_stack":["ROOT","a"],"metrics":{"flops":"3"}}},'
        b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":200007,"ts":1,"dur":2,"args":{"call_stack":["ROOT","a","k"]}}]}'
    )
    tree = (
        b'[{"children":[{"children":[],"frame":{"name":"k"},"metrics":{"count":2,"time (ns)":5.5,"device_id":"0",'
        b'"device_type":"CUDA","flops8":1e3,"bytes":2}}],"frame":{"name":"ROOT"},"metrics":{}},'
        b'{"CUDA":{"0":{"arch":"90","num_sms":132}}}]'
    )
    return {
        "stepstats": [step.SerializeToString(), metadata.SerializeToString()],
        "stepstats_text": [text_format.MessageToString(step).encode(), text_format.MessageToString(metadata).encode()],
        "collector_timeline": [chrome_trace(metadata).encode()],
        "tensorflow_timeline": [timeline],
        "xprof_trace": [xprof],
        "proton_timeline": [scopes],
        "profiler_timeline": [kineto],
        GZIP: [b"\0\0" + step.SerializeToString(), b"\x80\2" + kineto, b"\x80\5" + kineto, b"\xff\7" + kineto],
        "journal": [b"", b"\1\0\0\2", b"\1\x12\x60\2", b"\0" + struct.pack("<IIQI", 5, 1, 5, 1) + b"k"],
        # A byte of a column's coding, rows cut off, another count, a frame removed or of another segment, a cut file.
        SEGMENTS: [
            b"",
            b"\0\2\1\0\x14\5\1\7",
            b"\1\2\4\0\x40\1\0",
            b"\1\2\1\0\7\3\0",
            b"\1\1\0\0\0\x08\0",
            b"\2\2\3\0\0\x09\0",
            b"\3\0\0\x2a\0\x0a\0",
            b"\1\0\0\0\1\x0b\0\2\0\0\0\0\x0b\0",
        ],
        "proton": [tree],
        "xspace": [profile.getvalue()],
        "nsys": [b"", b"\x01\x00\2\xff", b"\x04\x00\1"],
        "gpurec": [b"", b"\0\0\1\2", b"\1\0\x40\2", b"\3\0\0\1", b"\7\0\0\2PK"],
    }


def replay() -> int:
    """Run every kept input through its reader; return how many there are."""
    count, small_files = 0, seeds()
    with tempfile.TemporaryDirectory() as folder:
        for reader in readers():
            small = small_files[reader]
            kept = [path.read_bytes() for path in sorted((HERE / "corpus" / reader).glob("*"))]
            for data in [*small, *kept]:
                check(reader, data, Path(folder))
                count += 1
    return count


def fuzz(reader: str, options: list[str]) -> None:
    """Never returns: libFuzzer ends the process."""
    import atheris

    # atheris cannot instrument modules that an editable install's finder loads: let the path finder run first.
    sys.meta_path.sort(key=lambda finder: "ScikitBuild" in type(finder).__name__)
    with atheris.instrument_imports(include=INSTRUMENTED):
        import collector.formats.chrome_events
        import collector.formats.collector_timeline
        import collector.formats.loading
        import collector.formats.profiler_timeline
        import collector.formats.proton_timeline
        import collector.formats.proton_tree
        import collector.formats.tensorflow_timeline
        import collector.formats.xprof_trace
        import collector.formats.xspace
        import collector.recording.gpurec
        import collector.recording.journal
        import collector.stepstats.salvage
        import collector.timeline  # noqa: F401
    start = Path(tempfile.mkdtemp())
    for number, data in enumerate(seeds()[reader]):
        (start / f"seed{number}").write_bytes(data)
    known = [token.strip() for token in TOKENS.get(reader, "").split("|") if token.strip()]
    if known:  # libFuzzer refuses an empty file
        tokens = start.with_suffix(".tokens")
        tokens.write_text("".join(f"{json.dumps(token)}\n" for token in known))
        options = [f"-dict={tokens}", *options]
    kept = HERE / "corpus" / reader
    with tempfile.TemporaryDirectory() as folder:
        mutator = {"custom_mutator": mutated_message} if reader == "stepstats" else {}
        atheris.Setup(
            [sys.argv[0], *options, str(start), *([str(kept)] if kept.is_dir() else [])],
            lambda data: check(reader, data, Path(folder)),
            **mutator,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:] == ["--replay"]:
        print(f"{replay()} inputs, each a trace or one clear error")
    elif sys.argv[1:] == ["--list"]:
        print(*readers(), sep="\n")
    elif len(sys.argv) > 1 and sys.argv[1] in readers():
        fuzz(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__)
