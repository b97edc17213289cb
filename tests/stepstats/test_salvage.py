"""The fields by which StepStats bytes are told from other messages are those of our descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.protobuf.descriptor import FieldDescriptor

import collector
from collector.errors import InvalidFileError
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.stepstats.salvage import BYTES, VARINT, Field, encode_field, foreign

if TYPE_CHECKING:
    from pathlib import Path

    from google.protobuf.message import Message

EPOCH_MICROS = 1_700_000_000_000_000
OF_BYTES = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)
FIELDS = [
    (message, field.number, VARINT if field.type in OF_BYTES else BYTES)
    for message in (RunMetadata, DeviceStepStats, NodeExecStats)
    for field in message.DESCRIPTOR.fields
]
"""Each field with a wire type that it does not have."""


def encoded(number: int, payload: bytes, wire_type: int = BYTES) -> bytes:
    return encode_field(Field(number, wire_type, 0, memoryview(payload), True))


def a_file(message: type[Message], further: bytes) -> bytes:
    """A RunMetadata of one node, with a further field in the message of this type."""
    node = NodeExecStats(node_name="a", all_start_micros=EPOCH_MICROS, all_end_rel_micros=5).SerializeToString()
    of_node, of_device, of_whole = (
        further if message is each else b"" for each in (NodeExecStats, DeviceStepStats, RunMetadata)
    )
    device = encoded(1, b"/cpu:0") + encoded(2, node + of_node) + of_device
    return encoded(1, encoded(1, device)) + of_whole


@pytest.mark.parametrize(("message", "number", "wire_type"), FIELDS)
def test_a_known_field_of_another_wire_type_is_refused(
    tmp_path: Path, message: type[Message], number: int, wire_type: int
) -> None:
    data = a_file(message, encoded(number, b"\x05", wire_type))
    assert foreign(data, is_run_metadata=True) is not None
    (tmp_path / "step.pb").write_bytes(data)
    with pytest.raises(InvalidFileError, match=rf"field {number} of a {message.DESCRIPTOR.name} has another wire type"):
        collector.load(tmp_path / "step.pb")


@pytest.mark.parametrize("number", [5, 99, 200_000])
def test_a_field_of_a_newer_tensorflow_or_another_program_is_passed_over(tmp_path: Path, number: int) -> None:
    for message in (RunMetadata, DeviceStepStats, NodeExecStats):
        if number != 5 or message is not NodeExecStats:
            (tmp_path / "step.pb").write_bytes(a_file(message, encoded(number, b"text")))
            assert collector.load(tmp_path / "step.pb").recording.annotations.names() == ["a"]


@pytest.mark.parametrize("message", [RunMetadata, StepStats])
def test_a_message_without_a_known_field_is_refused(message: type[Message]) -> None:
    assert foreign(encoded(99, b"text"), is_run_metadata=message is RunMetadata) is not None
