"""CUPTI's enumerations, which the simulator's callers write by name."""

from __future__ import annotations

from typing import get_args

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS
from collector.recording.kind_names import copy_kind_name
from collector.testing.simulator.operations import CopyKind, MemoryKind


def test_the_simulators_names_have_the_numbers_of_cupti():
    assert get_args(CopyKind)[1:] == COPY_KINDS[1:]
    assert [name.replace("_", "") for name in get_args(MemoryKind)] == [name.lower() for name in MEMORY_KINDS]


def test_a_copy_kind_that_a_newer_cupti_added_is_named_by_its_number():
    assert [copy_kind_name(kind) for kind in (1, 8, 42)] == ["HtoD", "DtoD", "kind 42"]
