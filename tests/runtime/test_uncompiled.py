"""Our functions under torch.compile, with a stand-in for torch in which `is_dynamo_compiling` is true."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

import collector
from collector.runtime.uncompiled import uncompiled
from collector.tracing.annotate import annotate, send_annotations_to


class Source:
    """Remembers annotations."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def push_annotation(self, path: str, details: int = 0) -> None:
        self.paths.append(path)

    def pop_annotation(self) -> None:
        pass


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch, whose ``compiler.reads`` says whether it is compiling."""
    module: Any = ModuleType("torch")
    module.compiler = SimpleNamespace(reads=False)
    module.compiler.is_dynamo_compiling = lambda: module.compiler.reads
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The methods of annotations as Dynamo reads them: without the C++ that replaces their calls in a trace."""
    send_annotations_to(cast("Any", Source()))  # the first time the calls are replaced
    send_annotations_to(None)
    for name in ("__enter__", "__exit__"):
        method = getattr(annotate, name)
        read = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
        monkeypatch.setattr(annotate, name, read)


@annotate("decorated")
def decorated() -> None:
    with annotate("inside"):
        pass


@pytest.mark.usefixtures("as_read")
def test_what_is_compiled_has_no_annotations_in_a_trace(torch):
    source: Any = Source()
    send_annotations_to(source)
    try:
        with annotate("outside"):
            torch.compiler.reads = True
            decorated()
            torch.compiler.reads = False
        decorated()
    finally:
        send_annotations_to(None)
    assert source.paths == ["outside", "decorated", "decorated/inside"]


def test_a_torch_without_a_compiler_is_as_none(torch):
    del torch.compiler
    source: Any = Source()
    send_annotations_to(source)
    try:
        decorated()
    finally:
        send_annotations_to(None)
    assert source.paths == ["decorated", "decorated/inside"]


class KeptOut:
    """What torch.compile has been kept out of, with a stand-in for its ``disable``."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.depth = 0

    def disable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.names.append(function.__name__)
            self.depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                self.depth -= 1

        return run


def test_the_compiler_is_kept_out_once_it_is_there(monkeypatch):
    kept_out = KeptOut()

    @uncompiled
    def add(a: int, b: int = 0) -> int:
        """Adds."""
        return a + b

    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    assert add(1, b=2) == 3
    dynamo: Any = ModuleType("torch._dynamo")
    monkeypatch.setitem(sys.modules, "torch._dynamo", dynamo)  # while it is being imported
    assert add(1, b=2) == 3
    assert kept_out.names == []
    dynamo.disable = kept_out.disable
    assert add(1, b=2) == 3
    assert kept_out.names == ["add"]
    assert add.__doc__ == "Adds."


def test_a_trace_is_made_without_calls_of_the_system_that_the_compiler_warns_of(monkeypatch):
    kept_out = KeptOut()
    dynamo: Any = ModuleType("torch._dynamo")
    dynamo.disable = kept_out.disable
    monkeypatch.setitem(sys.modules, "torch._dynamo", dynamo)
    collector.trace()  # the first one imports modules
    calls: list[tuple[str, bool]] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__module__", None) == "posix":
            calls.append((called.__name__, kept_out.depth > 0))

    sys.setprofile(note)
    try:
        collector.trace()
        os.getpid()  # which is seen
    finally:
        sys.setprofile(None)
    assert calls.pop() == ("getpid", False)
    assert [name for name, is_kept_out in calls if not is_kept_out] == []
