"""Checkpoints written here by the published format, read back; damage is noticed."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from collector import profiler
from collector.cli import main
from collector.errors import InvalidFileError
from collector.profiler import prompt, slices, snappy
from collector.profiler.checkpoint import Checkpoint
from collector.profiler.crc32c import crc32c, unmask
from collector.protos import BundleEntryProto, BundleHeaderProto, DataType, GraphDef

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def _varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _literals(data: bytes) -> bytes:
    """Snappy without any copies."""
    parts = [data[at : at + 60] for at in range(0, len(data), 60)]
    return _varint(len(data)) + b"".join(bytes([(len(part) - 1) << 2]) + part for part in parts)


def _block(entries: list[tuple[bytes, bytes]], *, compress: bool) -> bytes:
    body, before = b"", b""
    for key, value in entries:
        shared = next(
            (n for n, (a, b) in enumerate(zip(key, before, strict=False)) if a != b), min(len(key), len(before))
        )
        body += _varint(shared) + _varint(len(key) - shared) + _varint(len(value)) + key[shared:] + value
        before = key
    body += struct.pack("<II", 0, 1)
    stored = _literals(body) if compress else body
    kind = bytes([compress])
    return stored + kind + struct.pack("<I", _mask(crc32c(stored + kind)))


def _table(entries: list[tuple[bytes, bytes]], *, compress: bool) -> bytes:
    data = _block(entries, compress=compress)
    handle = _varint(0) + _varint(len(data) - 5)
    index = _block([(b"~", handle)], compress=False)
    footer = handle + _varint(len(data)) + _varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def _raw(value: np.ndarray) -> tuple[DataType, bytes, bytes]:
    """Type, what is stored, and what its checksum is of."""
    if value.dtype == object:
        texts = [bytes(text) for text in value.reshape(-1)]
        counted = b"".join(struct.pack("<I", len(text)) for text in texts)
        rest = struct.pack("<I", _mask(crc32c(counted))) + b"".join(texts)
        return DataType.DT_STRING, b"".join(_varint(len(text)) for text in texts) + rest, counted + rest
    dtype = {"f": DataType.DT_FLOAT, "i": DataType.DT_INT64}[value.dtype.kind]
    return dtype, value.tobytes(), value.tobytes()


def _signed(value: int) -> bytes:
    """A number as slices' keys have it, for the lengths 1 and 2."""
    if -64 <= value < 64:
        return bytes([value & 0xFF ^ 0x80])
    return struct.pack(">H", value & 0xFFFF ^ 0xC000)


def _slice_key(name: str, extents: list[tuple[int, int]]) -> bytes:
    numbers = b"".join(_signed(start) + _signed(length) for start, length in extents)
    return b"\0" + name.encode() + b"\0\1" + bytes([1, len(extents)]) + numbers


def _write(
    folder,
    values: dict[str, np.ndarray],
    *,
    compress: bool = False,
    sliced: dict[str, list[list[tuple[int, int]]]] | None = None,
) -> str:
    """Writes a checkpoint; ``sliced``: variable -> its parts, each (start, length) per dimension, -1 for all of it."""
    prefix = str(folder / "model.ckpt")
    entries, data = [(b"", BundleHeaderProto(num_shards=1).SerializeToString())], b""

    def add(key: bytes, value: np.ndarray) -> None:
        nonlocal data
        dtype, raw, checked = _raw(value)
        entry = BundleEntryProto(dtype=dtype, offset=len(data), size=len(raw), crc32c=_mask(crc32c(checked)))
        for size in value.shape:
            entry.shape.dim.add(size=size)
        entries.append((key, entry.SerializeToString()))
        data += raw

    for name, value in values.items():
        if name not in (sliced or {}):
            add(name.encode(), value)
            continue
        whole = BundleEntryProto(dtype=_raw(value)[0])
        for size in value.shape:
            whole.shape.dim.add(size=size)
        for extents in sliced[name]:
            listed = whole.slices.add()
            for start, length in extents:
                listed.extent.add(**({} if length < 0 else {"start": start, "length": length}))
            part = value[tuple(slice(start, None if length < 0 else start + length) for start, length in extents)]
            add(_slice_key(name, extents), np.ascontiguousarray(part))
        entries.append((name.encode(), whole.SerializeToString()))
    (folder / "model.ckpt.index").write_bytes(_table(sorted(entries), compress=compress))
    (folder / "model.ckpt.data-00000-of-00001").write_bytes(data)
    return prefix


@pytest.mark.parametrize("compress", [False, True])
def test_names_shapes_and_values(tmp_path, compress):
    words = np.array([b"one", b"", b"three"], object)
    values = {"layer/weights": WEIGHTS, "layer/weights_1": WEIGHTS * 2, "step": np.array(7, np.int64), "words": words}
    checkpoint = Checkpoint(_write(tmp_path, values, compress=compress))
    assert checkpoint.names() == sorted(values)
    assert checkpoint.shape("layer/weights") == (2, 3)
    for name, value in values.items():
        assert (checkpoint.read(name) == value).all()


TALL = np.arange(200 * 3, dtype=np.float32).reshape(200, 3)


@pytest.mark.parametrize(
    "parts",
    [
        [[(0, 63), (0, -1)], [(63, 1), (0, -1)], [(64, 136), (0, -1)]],
        [[(0, 200), (0, 1)], [(0, 200), (1, 2)]],
        [[(0, -1), (0, -1)]],
    ],
)
def test_a_variable_in_slices_is_put_together(tmp_path, parts):
    checkpoint = Checkpoint(_write(tmp_path, {"tall": TALL, "v": WEIGHTS}, sliced={"tall": parts}))
    assert checkpoint.names() == ["tall", "v"]
    assert checkpoint.shape("tall") == (200, 3)
    assert (checkpoint.read("tall") == TALL).all()
    assert (checkpoint.read("v") == WEIGHTS).all()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([[(0, 100), (0, -1)]], "do not make up the shape"),
        ([[(0, 100), (0, -1)], [(0, 50), (0, -1)], [(50, 50), (0, -1)]], "does not fit"),
    ],
)
def test_slices_that_do_not_fit(tmp_path, parts, message):
    checkpoint = Checkpoint(_write(tmp_path, {"tall": TALL}, sliced={"tall": parts}))
    with pytest.raises(InvalidFileError, match=message):
        checkpoint.read("tall")


def test_a_slice_of_another_shape_than_its_place(tmp_path):
    checkpoint = Checkpoint(_write(tmp_path, {"tall": TALL}, sliced={"tall": [[(0, -1), (0, -1)]]}))
    (entry,) = checkpoint._slices.values()
    entry.shape.dim[0].size, entry.shape.dim[1].size = 3, 200
    with pytest.raises(InvalidFileError, match="does not fit"):
        checkpoint.read("tall")


def test_a_slice_that_is_missing(tmp_path):
    prefix = _write(tmp_path, {"tall": TALL}, sliced={"tall": [[(0, -1), (0, -1)]]})
    checkpoint = Checkpoint(prefix)
    checkpoint._slices.clear()
    with pytest.raises(InvalidFileError, match="a slice of tall is missing"):
        checkpoint.read("tall")


@pytest.mark.parametrize(
    ("number", "stored"),
    [
        (0, "80"),
        (-1, "7f"),
        (63, "bf"),
        (64, "c040"),
        (-64, "40"),
        (-0x800, "3800"),
        (0x424242, "f0424242"),
        (2**62, "ffc04000000000000000"),
        (-(2**63), "003f8000000000000000"),
    ],
)
def test_numbers_in_the_keys_of_slices(number, stored):
    data = bytes.fromhex(stored)
    assert slices._signed(data, 0) == (number, len(data))


KEYS = st.builds(
    _slice_key,
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10),
    st.lists(st.just((0, -1)) | st.tuples(st.integers(-8192, 8191), st.integers(0, 8191)), max_size=4),
)


@given(KEYS)
def test_keys_of_slices_are_read(key):
    assert _slice_key(*slices.decode(key)) == key


@given(KEYS, st.integers(0), st.integers(0, 255))
def test_damaged_keys_of_slices_are_read_or_refused(key, at, byte):
    damaged = bytearray(key)
    damaged[at % len(key)] = byte
    with contextlib.suppress(InvalidFileError):
        name, extents = slices.decode(bytes(damaged))
        assert isinstance(name, str)
        assert all(len(extent) == 2 for extent in extents)


def test_names_with_odd_bytes_in_the_keys_of_slices():
    key = b"\0" + b"a\0\xffb" + b"\0\1" + b"\1\1" + _signed(3) + _signed(4)
    assert slices.decode(key) == ("a\0b", ((3, 4),))


@pytest.mark.medium
@pytest.mark.parametrize("length", [0, 1, 65535, 65536, 65537, (1 << 17) + 3, (1 << 18) + (1 << 16) + 9])
def test_checksums_of_any_length(length):
    data = np.random.default_rng(length).bytes(length)
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    assert crc32c(data) == state ^ 0xFFFFFFFF


def test_known_checksum():
    assert crc32c(b"123456789") == 0xE3069283
    assert unmask(_mask(0x12345678)) == 0x12345678


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"\x01" + data[1:], lambda data: b""])
def test_corrupt_index(tmp_path, damage):
    prefix = _write(tmp_path, {"v": WEIGHTS})
    index = tmp_path / "model.ckpt.index"
    index.write_bytes(damage(index.read_bytes()))
    with pytest.raises(InvalidFileError, match="is not a checkpoint index"):
        Checkpoint(prefix)


def test_a_value_that_lies_beyond_its_file_or_does_not_make_its_shape(tmp_path):
    checkpoint = Checkpoint(_write(tmp_path, {"v": WEIGHTS}))
    entry = checkpoint._entries["v"]
    for field, value, why in (("size", 1 << 60, "ends before"), ("offset", -5, "ends before"), ("size", 23, "bytes")):
        before = getattr(entry, field)
        setattr(entry, field, value)
        with pytest.raises(InvalidFileError, match=why):
            checkpoint.read("v")
        setattr(entry, field, before)


def test_corrupt_text(tmp_path):
    prefix = _write(tmp_path, {"words": np.array([b"one", b"three"], object)})
    data = tmp_path / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes().replace(b"three", b"throe"))
    with pytest.raises(InvalidFileError, match="checksum"):
        Checkpoint(prefix).read("words")


def test_corrupt_value(tmp_path):
    prefix = _write(tmp_path, {"v": WEIGHTS})
    (tmp_path / "model.ckpt.data-00000-of-00001").write_bytes(bytes(24))
    with pytest.raises(InvalidFileError, match="checksum"):
        Checkpoint(prefix).read("v")


def test_missing_files(tmp_path):
    with pytest.raises(InvalidFileError, match="cannot be read"):
        Checkpoint(tmp_path / "nothing")


def test_values_and_type_in_the_scope_view(tmp_path):
    graph = GraphDef()
    graph.node.add(name="v", op="VariableV2")
    p = profiler.Profiler(graph)
    p.add_checkpoint(_write(tmp_path, {"v": WEIGHTS}))
    everything = {"start_name_regexes": [".*"], "show_name_regexes": [".*"], "output": "none"}
    words = {**everything, "account_type_regexes": ["_checkpoint_variables"], "select": ["tensor_value"]}
    (node,) = p.profile_name_scope(words).children
    assert list(node.tensor_value.value_double) == WEIGHTS.reshape(-1).tolist()
    text = p.reporter.ask("scope", profiler.Options(select=frozenset(["tensor_value"]))).text
    assert "[[0.00 0.25 0.50],\n[0.75 1.00 1.25],\n],\n" in text


@given(st.binary(max_size=500))
def test_snappy_literals(data):
    assert snappy.decompress(_literals(data)) == data


def test_snappy_copies_may_run_into_themselves():
    assert snappy.decompress(b"\x0b\x04ab" + bytes([(9 - 4) << 2 | 1, 2])) == b"ab" * 5 + b"a"
    assert snappy.decompress(b"\x04\x04ab" + bytes([1 << 2 | 2, 2, 0])) == b"abab"


@given(st.binary(max_size=60))
def test_snappy_never_fails_otherwise(data):
    with contextlib.suppress(InvalidFileError):
        assert isinstance(snappy.decompress(data), bytes)


def test_the_prompt_survives_a_corrupt_value(tmp_path):
    graph = GraphDef()
    graph.node.add(name="v", op="VariableV2")
    p = profiler.Profiler(graph)
    p.add_checkpoint(_write(tmp_path, {"v": WEIGHTS}))
    (tmp_path / "model.ckpt.data-00000-of-00001").write_bytes(bytes(24))
    written: list[str] = []
    asked = prompt.Prompt(lambda command: p.reporter.ask(command.name, command.options).text)
    asked.run(["scope -select tensor_value", "scope -select params"], written.append)
    assert "the value of v is corrupt (its checksum is wrong)\n" in written[0]
    assert written[0].count("\n") == 1
    assert "# parameters" in written[1]


@pytest.mark.parametrize("part", ["index", "data-00000-of-00001"])
def test_a_view_is_not_written_over_a_file_of_the_checkpoint(part, tmp_path, capsys):
    graph = GraphDef()
    graph.node.add(name="v", op="VariableV2")
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    prefix = _write(tmp_path, {"v": WEIGHTS})
    read = tmp_path / f"model.ckpt.{part}"
    content = read.read_bytes()
    words = ["prof", f"--graph_path={tmp_path / 'graph'}", f"--checkpoint_path={prefix}", "scope"]
    assert main([*words, "-output", f"file:outfile={read}"]) == 2
    assert f"cannot write {read}: it is an input" in capsys.readouterr().err
    assert read.read_bytes() == content


def test_values_that_are_gone_are_reported_at_the_question(tmp_path, capsys):
    graph = GraphDef()
    graph.node.add(name="v", op="VariableV2")
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    prefix = _write(tmp_path, {"v": WEIGHTS})
    words = ["prof", f"--graph_path={tmp_path / 'graph'}", f"--checkpoint_path={prefix}", "scope"]
    ask = [*words, "-select", "tensor_value"]
    assert main(ask) == 0
    assert "[0.75 1.00 1.25]" in capsys.readouterr().out
    data = tmp_path / "model.ckpt.data-00000-of-00001"
    data.write_bytes(bytes(24))
    for message in ("checksum is wrong", "cannot be read"):
        assert main(words) == 0
        capsys.readouterr()
        assert main(ask) == 2
        assert message in capsys.readouterr().err
        data.unlink(missing_ok=True)
