"""Throw damaged files at the readers: each input gives a trace or one clear error, never anything else.

    python fuzz/fuzz_readers.py READER [libFuzzer options]      READER: messages, text, chrome, gzip, recording
    python fuzz/fuzz_readers.py --replay                         run the kept corpus only (needs no atheris)

Inputs that once found something are kept in fuzz/corpus/READER; libFuzzer grows its own corpus in the folder named on
its command line, if any.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

READERS = ("messages", "text", "chrome", "gzip", "recording")


@cache
def _empty_recording() -> bytes:
    from collector.recording import Recording
    from collector.sources import empty_capture

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.gpurec"
        Recording.from_capture(empty_capture()).save(path)
        return path.read_bytes()


def _damaged_recording(damage: bytes) -> bytes:
    """A whole recording with `damage` written over it, at the place that its first two bytes say."""
    whole = _empty_recording()
    at = int.from_bytes(damage[:2], "big") % len(whole)
    return whole[:at] + damage[2:] + whole[at + len(damage[2:]) :]


WRAPPED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data[:-1], mtime=0) + data[-1:],
    "recording": _damaged_recording,
}
"""What is done to the fuzzer's bytes first, where they would hardly ever get past the outermost format."""


def check(reader: str, data: bytes, folder: Path) -> None:
    """Read `data` as a file; raise anything but the one error that a reader may raise."""
    from collector.errors import InvalidFileError
    from collector.loading import load

    path = folder / "fuzzed.bin"
    path.write_bytes(WRAPPED.get(reader, bytes)(data))
    try:
        trace = load(path)
    except InvalidFileError as error:
        message = str(error)
        if "\n" in message or not message.startswith(str(path)):
            raise AssertionError(f"not one line that names the file: {message!r}") from error
        return
    trace.run_metadata.SerializeToString()
    if bool(trace.warning) != bool(trace.skipped or trace.cut_at is not None):
        raise AssertionError(f"skipped {trace.skipped}, but the warning is {trace.warning!r}")


def seeds() -> dict[str, list[bytes]]:
    """Small whole files of each kind, for the fuzzer to start from."""
    from google.protobuf import text_format

    from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats

    node = NodeExecStats(node_name="a:k", timeline_label="k regs:1", all_start_micros=1_700_000_000_000_000)
    step = StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=[node], thread_names={1: "t"})])
    metadata = RunMetadata(step_stats=step)
    kineto = (
        b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"stream":7}}]}'
    )
    timeline = (
        b'[{"name":"process_name","ph":"M","pid":1,"args":{"name":"/cpu:0 Compute"}},'
        b'{"ph":"X","cat":"Op","name":"Add","pid":1,"tid":0,"ts":1,"dur":2,"args":{"name":"a","op":"Add","input0":"b"}}'
    )
    return {
        "messages": [step.SerializeToString(), metadata.SerializeToString()],
        "text": [text_format.MessageToString(step).encode(), text_format.MessageToString(metadata).encode()],
        "chrome": [kineto, timeline],
        "gzip": [step.SerializeToString(), kineto],
        "recording": [b"\0\0"],
    }


def replay() -> int:
    """Run every kept input through its reader; return how many there are."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for reader, small in seeds().items():
            kept = [path.read_bytes() for path in sorted((HERE / "corpus" / reader).glob("*"))]
            for data in [*small, *kept]:
                check(reader, data, Path(folder))
                count += 1
    return count


def fuzz(reader: str, options: list[str]) -> None:
    """Never returns: libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["collector"]):
        import collector.formats.chrome_events
        import collector.formats.profiler_timeline
        import collector.formats.salvage
        import collector.formats.tensorflow_timeline
        import collector.loading
        import collector.recording_file  # noqa: F401
    start = Path(tempfile.mkdtemp())
    for number, data in enumerate(seeds()[reader]):
        (start / f"seed{number}").write_bytes(data)
    kept = HERE / "corpus" / reader
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup(
            [sys.argv[0], *options, str(start), *([str(kept)] if kept.is_dir() else [])],
            lambda data: check(reader, data, Path(folder)),
        )
        atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:] == ["--replay"]:
        print(f"{replay()} inputs, each a trace or one clear error")
    elif len(sys.argv) > 1 and sys.argv[1] in READERS:
        fuzz(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__)
