"""Checkpoints written here by the published format, read back; damage is noticed."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector import profiler
from collector.cli import main
from collector.errors import InvalidFileError
from collector.profiler import snappy
from collector.profiler.checkpoint import Checkpoint, crc32c, unmask
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


def _write(folder, values: dict[str, np.ndarray], *, compress: bool = False) -> str:
    prefix = str(folder / "model.ckpt")
    entries, data = [(b"", BundleHeaderProto(num_shards=1).SerializeToString())], b""
    for name, value in sorted(values.items()):
        if value.dtype == object:
            texts = [bytes(text) for text in value.reshape(-1)]
            raw = b"".join(_varint(len(text)) for text in texts) + b"\0\0\0\0" + b"".join(texts)
            dtype = DataType.DT_STRING
        else:
            raw = value.tobytes()
            dtype = {"f": DataType.DT_FLOAT, "i": DataType.DT_INT64}[value.dtype.kind]
        entry = BundleEntryProto(dtype=dtype, offset=len(data), size=len(raw), crc32c=_mask(crc32c(raw)))
        for size in value.shape:
            entry.shape.dim.add(size=size)
        entries.append((name.encode(), entry.SerializeToString()))
        data += raw
    (folder / "model.ckpt.index").write_bytes(_table(entries, compress=compress))
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


def test_known_checksum():
    assert crc32c(b"123456789") == 0xE3069283
    assert unmask(_mask(0x12345678)) == 0x12345678


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"\x01" + data[1:], lambda data: b""])
def test_corrupt_index(tmp_path, damage):
    prefix = _write(tmp_path, {"v": WEIGHTS})
    index = tmp_path / "model.ckpt.index"
    index.write_bytes(damage(index.read_bytes()))
    with pytest.raises(InvalidFileError, match="no checkpoint index"):
        Checkpoint(prefix)


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


def test_values_that_are_gone_are_said_at_the_question(tmp_path, capsys):
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
    for said in ("checksum is wrong", "cannot be read"):
        assert main(words) == 0
        capsys.readouterr()
        assert main(ask) == 2
        assert said in capsys.readouterr().err
        data.unlink(missing_ok=True)
