"""Triton's launches: its real chain of hooks, called by a stand-in for its launcher."""

from __future__ import annotations

from typing import Any

import pytest

import collector
from collector import adapters
from collector.recording.annotation_details import Details
from collector.tracing.annotate import send_annotations_to

knobs = pytest.importorskip("triton.knobs", reason="NO ADAPTER WAS TRIED BESIDE TRITON: it is not installed")


class Source:
    """Remembers paths and numbers of details."""

    def __init__(self) -> None:
        self.pushed: list[tuple[str, int]] = []
        self.depth = 0

    def push_annotation(self, path: str, details: int = 0) -> None:
        self.pushed.append((path, details))
        self.depth += 1

    def pop_annotation(self) -> None:
        self.depth -= 1


def launch(source: Source, metadata: dict[str, Any], fails: bool = False) -> int:
    """What Triton's launcher does around a launch; the number of open annotations meanwhile."""
    from triton.compiler.compiler import LazyDict

    lazy = LazyDict({"name": "kernel", "function": 1, "stream": 0})
    lazy.add(lambda given: given, (metadata,))
    knobs.runtime.launch_enter_hook(lazy)
    depth = source.depth
    if not fails:
        knobs.runtime.launch_exit_hook(lazy)
    return depth


@pytest.fixture
def source():
    source = Source()
    with adapters.annotate_triton_launches():
        send_annotations_to(source)
        yield source
        send_annotations_to(None)
    assert source.depth == 0


def noted(source: Source) -> list[tuple[str, Details | None]]:
    details = list(send_annotations_to(None).details)
    return [(path, details[number - 1] if number else None) for path, number in source.pushed]


def test_a_launch_has_its_kernels_name_flops_and_bytes(source):
    with collector.annotate("step"):
        assert launch(source, {"flops16": 1000, "flops8": 24, "bytes": 4096, "other": "text"}) == 2
        assert source.depth == 1
    assert noted(source)[1] == ("step/kernel", Details(1024, 4096))


@pytest.mark.parametrize("stated", [{}, {"flops": None}, {"flops": -1, "bytes": float("nan")}, {"flops": "many"}])
def test_a_launch_without_usable_numbers_has_a_name_alone(source, stated):
    launch(source, stated)
    assert noted(source) == [("kernel", None)]


def test_a_launch_that_raised_is_left_by_the_next(source):
    launch(source, {}, fails=True)
    launch(source, {"name": ""})
    assert [path for path, _ in source.pushed] == ["kernel", "triton kernel"]


def test_metadata_is_not_computed_while_nothing_is_traced_and_hooks_go_away():
    from triton.compiler.compiler import LazyDict

    calls = []
    lazy = LazyDict({})
    lazy.add(lambda: calls.append(1) or {}, ())
    with adapters.annotate_triton_launches() as hooks:
        assert len(knobs.runtime.launch_enter_hook.calls) == 1
        knobs.runtime.launch_enter_hook(lazy)
        knobs.runtime.launch_exit_hook(lazy)
        hooks.remove()
        hooks.remove()
    assert calls == []
    assert knobs.runtime.launch_enter_hook.calls == knobs.runtime.launch_exit_hook.calls == []


def test_a_program_and_a_library_that_name_launches_name_them_once(source):
    with adapters.annotate_triton_launches():
        assert launch(source, {"flops": 8}) == 1
    assert launch(source, {"flops": 8}) == 1
    assert noted(source) == [("kernel", Details(8, 0))] * 2
