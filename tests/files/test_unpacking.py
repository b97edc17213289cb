"""Compressed files: decompressed as far as they are intact, and refused above the limits of memory."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import example, given, settings
from hypothesis import strategies as st
from properties import examples

from collector.errors import InvalidFileError
from collector.files import unpacking
from collector.files.unpacking import unpack_gzip
from collector.formats.loading import load
from collector.profiler import inputs
from collector.protos import GraphDef
from collector.recording.recording import Recording

MIB = 1 << 20


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """Files of some 128 KiB that unpack to 128 MiB."""
    folder = tmp_path_factory.mktemp("bombs")
    (folder / "one_stream.pb.gz").write_bytes(gzip.compress(b"\x0a\x00" * (64 * MIB), 1, mtime=0))
    for name, start, unit in (
        ("list.json", b"[", b"["),
        ("events.json", b"[{}", b",{}  "),
        ("step.pb", b"", b"\x0a\x00"),
    ):
        streams = gzip.compress(unit * (4 * MIB // len(unit)), mtime=0) * 32
        (folder / f"{name}.gz").write_bytes(gzip.compress(start, mtime=0) + streams)
    return sorted(folder.iterdir())


@pytest.mark.medium
def test_bombs_are_refused(bombs):
    for path in bombs:
        assert path.stat().st_size < MIB
        with pytest.raises(InvalidFileError, match="unpacks to more than 200 times its size, as no trace does"):
            load(path)


@pytest.mark.slow
def test_bombs_take_little_memory(bombs):
    """A process of its own: what is told of memory is the most that it ever had."""
    program = """
import resource, sys
from collector.errors import InvalidFileError
from collector.formats.loading import load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sys.argv[1:]:
    try:
        load(name)
    except InvalidFileError:
        pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", program, *map(str, bombs)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400  # MiB; the most that is unpacked before the refusal is 64 MiB, twice where joined


@pytest.mark.medium
def test_a_graph_may_be_no_bomb_either(bombs):
    [bomb] = [path for path in bombs if path.name == "step.pb.gz"]
    with pytest.raises(InvalidFileError, match="200 times its size"):
        inputs.load(bomb, GraphDef)


def test_a_file_may_take_a_quarter_of_the_available_memory(tmp_path, monkeypatch):
    path = tmp_path / "step.pb.gz"
    path.write_bytes(gzip.compress(b"\x0a\x00" * MIB))
    monkeypatch.setattr(unpacking, "available_memory", lambda: 3 << 20)
    with pytest.raises(InvalidFileError, match="a quarter of the 3 MiB of available memory"):
        load(path)
    monkeypatch.setattr(unpacking, "available_memory", lambda: None)
    assert unpack_gzip(path.read_bytes(), path).content == b"\x0a\x00" * MIB


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_columns_of_a_recording_may_take_half_of_the_available_memory(build, tmp_path, monkeypatch, version, is_cut):
    """Whatever the size of the file: columns of equal rows take no bytes in it."""
    path = tmp_path / "step.gpurec"
    if version == 1:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("meta.json", json.dumps({"format": "collector recording", "version": 1}))
            archive.writestr("kernels/start_ns.npy", bytes(2 * MIB))
    else:
        capture = build.kernel("k", 0, 5).capture()
        kernels = capture["tables"]["kernels"]
        capture["tables"]["kernels"] = {name: np.repeat(values, MIB) for name, values in kernels.items()}
        Recording.from_capture(capture).save(path)
    assert path.stat().st_size < MIB // 8
    if is_cut:
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.index(b"PK\x01\x02")])
    monkeypatch.setattr(unpacking, "available_memory", lambda: 3 << 20)
    with pytest.raises(InvalidFileError, match="unpacks to more than half of the 3 MiB of available memory"):
        load(path)
    if version == 2:
        monkeypatch.setattr(unpacking, "available_memory", lambda: None)
        assert len(load(path).recording.kernels) == MIB


def test_columns_of_different_lengths_are_refused_before_they_take_memory(build, tmp_path):
    path = tmp_path / "step.gpurec"
    build.kernel("k", 0, 5).recording().save(path)
    with zipfile.ZipFile(path) as archive:
        meta = json.loads(archive.read("meta.json"))
    meta["columns"]["kernels"]["grid_x"]["rows"] = 1 << 20
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", json.dumps(meta))
    with pytest.raises(InvalidFileError, match="the columns of table kernels have different numbers of rows"):
        load(path)


def test_available_memory_is_some_of_this_machines():
    available = unpacking.available_memory()
    assert available is None or 0 <= available < 1 << 50


def test_memory_of_a_control_group_counts_without_its_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "_GROUP", tmp_path)
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 100\nactive_file 300\ninactive_file 500\n")
    (tmp_path / "memory.max").write_text("max\n")
    free = unpacking.available_memory()
    assert free is None or free > 1000
    (tmp_path / "memory.max").write_text("1000\n")
    assert unpacking.available_memory() == 900


@pytest.mark.medium
def test_a_repetitive_trace_is_no_bomb(build, tmp_path):
    for start in range(0, 200_000, 10):
        build.kernel("k", start, 5)
    recording = build.recording()
    for name in ("step.json.gz", "step.gpurec"):
        recording.save(tmp_path / name)
        assert load(tmp_path / name).warning == ""
    assert Recording.load(tmp_path / "step.gpurec").kernels.start_ns.tolist() == recording.kernels.start_ns.tolist()


@settings(max_examples=examples(60), deadline=None)
@given(
    parts=st.lists(st.binary(min_size=1, max_size=300_000), min_size=1, max_size=3),
    cut=st.integers(0, 200),
    behind=st.sampled_from([b"", b"\0" * 9, b"no gzip"]),
)
@example(parts=[b"\0", b"\0"], cut=20, behind=b"")  # one byte of the second stream is left
@example(parts=[b"\0", b"\0"], cut=21, behind=b"")  # nothing of it is left
def test_streams_come_out_as_they_went_in(parts, cut, behind):
    streams = [gzip.compress(part, mtime=0) for part in parts]
    whole = b"".join(streams)
    assert unpack_gzip(whole + behind, "a.gz") == (b"".join(parts), "", False)
    found = unpack_gzip(whole[: -cut or None], "a.gz")
    assert b"".join(parts).startswith(found.content)
    assert found.is_cut == (len(whole) - cut not in itertools.accumulate(map(len, streams)))


def test_before_damage_all_is_kept():
    content = random.Random(5).randbytes(400_000)
    data = bytearray(gzip.compress(content, mtime=0))
    data[-1000:] = b"\xff" * 1000
    found = unpack_gzip(bytes(data), "a.gz")
    assert found.damage
    assert found.content[:390_000] == content[:390_000]
