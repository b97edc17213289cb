"""Sessions with a handmade source: lifecycle, errors, results, files."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from reference.in_python import use_python

import collector
from collector.errors import error_of_kind
from collector.options import KINDS, TraceOptions
from collector.protos import RunMetadata
from collector.recording.recording import Recording
from collector.runtime.extension import load_extension
from collector.sources.replay import ReplaySource
from collector.stepstats import message_size
from collector.tracing import session_slot

UNAVAILABLE = {
    "driver-not-found": collector.DriverNotFoundError,
    "cupti-not-found": collector.CuptiNotFoundError,
    "cupti-unusable": collector.CuptiUnusableError,
    "permission-denied": collector.PermissionDeniedError,
    "subscriber-conflict": collector.SubscriberConflictError,
    "cupti-call": collector.CuptiCallError,
    "of a later version": collector.UnavailableError,
}


@pytest.fixture
def source(fake_source, step_capture):
    return fake_source(step_capture)


def traced(source, path=None, **options) -> collector.Session:
    """A session in which nothing happens but what the source hands over."""
    with collector.trace(path, source=source, **options) as step:
        pass
    return step


def never_runs(source, path=None, **options) -> None:
    """A session whose body must not be reached."""
    with collector.trace(path, source=source, **options):
        pytest.fail("the body ran")


def test_a_traced_block_yields_recording_ledger_stats_and_summary(source):
    with collector.trace(source=source) as step:
        pass
    assert source.calls == ["start", "stop"]
    assert step.unavailable is None
    assert step.kernels.names() == ["add<float>"]
    assert len(step.memcpys) == len(step.memsets) == 1
    assert step.ledger.complete
    assert step.recording.kernels is step.kernels
    devices = [device.device for device in step.step_stats.dev_stats]
    assert devices == ["/cpu:0", "/gpu:0/stream:all", "/gpu:0/stream:7", "/gpu:0/memcpy"]
    assert step.run_metadata.step_stats == step.step_stats
    assert "add" in step.summary()


def test_options_reach_the_source(source):
    with collector.trace(
        source=source, kinds=["kernels"], buffer_bytes=8192, max_buffers=3, synchronize=False, rank=2, job="train"
    ) as step:
        pass
    assert source.options.kinds == ("kernels",)
    assert (source.options.buffer_bytes, source.options.max_buffers) == (8192, 3)
    assert step.step_stats.dev_stats[0].device == "/job:train/replica:0/task:2/cpu:0"


def test_the_defaults_record_every_kind(source):
    with collector.trace(source=source):
        pass
    assert source.options.kinds == KINDS


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("source", "nvprof", "unknown source 'nvprof'"),
        ("kinds", ["kernel"], "unknown kind 'kernel'"),
        ("kinds", ["kernels", "peer_copies"], "peer_copies needs memcpys"),
        ("kinds", [], "nothing would be recorded"),
        ("buffer_bytes", 100, "at least 4096"),
        ("buffer_bytes", 4100, "multiple of 8"),
        ("max_buffers", 0, "at least 1"),
        ("timeout_ms", -1, "at least 0"),
        ("buffer_bytes", 1 << 60, "at most"),
        ("max_buffers", 1 << 40, "at most"),
        ("timeout_ms", 1 << 60, "at most"),
        ("rank", -1, "ranks count from 0"),
        ("job", "a/b", "is not a name"),
    ],
)
def test_impossible_options_are_refused_at_the_call(option, value, message):
    with pytest.raises(ValueError, match=message):
        collector.trace(**{option: value})


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("buffer_bytes", "8MB", "buffer_bytes takes a whole number, not '8MB'"),
        ("buffer_bytes", 8e6, "buffer_bytes takes a whole number, not 8000000.0"),
        ("max_buffers", None, "max_buffers takes a whole number, not None"),
        ("timeout_ms", True, "timeout_ms takes a whole number, not True"),
        ("rank", "3", "rank takes a whole number, not '3'"),
        ("job", 3, "job takes text, not 3"),
        ("source", 3, "source takes a name or a source, not 3"),
        ("kinds", [3], "kinds takes names, not 3"),
        ("kinds", None, "kinds takes names, not None"),
    ],
)
def test_options_of_another_type_are_refused_at_the_call(option, value, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        collector.trace(**{option: value})


def test_one_kind_can_be_named_by_itself(source):
    traced(source, kinds="kernels")
    assert source.options.kinds == ("kernels",)


@pytest.mark.parametrize(("path", "journal"), [("x.gpurec", "x.gpurec"), ("x.gpurec", "folder/../x.gpurec")])
def test_a_journal_cannot_be_the_trace_itself(tmp_path, monkeypatch, path, journal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="the trace and its journal are one file"):
        collector.trace(path, journal=journal)


def test_a_tilde_in_a_path_is_the_home_folder(source, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    step = traced(source, "~/t.gpurec")
    step.save("~/u.gpurec")
    assert files_of(tmp_path) == ["t.gpurec", "u.gpurec"]
    assert len(collector.load("~/t.gpurec").recording.kernels) == len(Recording.load("~/u.gpurec").kernels) == 1
    with pytest.raises(ValueError, match="one file"):
        collector.trace("~/t.gpurec", journal=tmp_path / "t.gpurec")


@pytest.mark.parametrize("name", ["x" * 300 + ".json", "a\0b.json", "\ud800.json"])
def test_a_name_that_no_file_can_have_costs_only_the_file(source, tmp_path, name):
    with pytest.warns(collector.CollectorWarning, match="will not be saved: cannot write"):
        step = traced(source, tmp_path / name)
    assert step.kernels.names() == ["add<float>"]
    with pytest.raises(collector.OutputError):
        never_runs(source, tmp_path / name, strict=True)


def test_results_before_the_end_of_a_step_say_that_there_are_none_yet(source):
    session = collector.trace(source=source)
    with pytest.raises(collector.NotTracedError, match="not traced a step yet"):
        _ = session.recording
    with session, pytest.raises(collector.NotTracedError, match="still being traced"):
        _ = session.step_stats
    assert session.recording


# --- trouble


@pytest.mark.parametrize("kind", UNAVAILABLE)
def test_what_cannot_be_traced_runs_with_one_warning_naming_cause_and_remedy(source, kind):
    source.fail["start"] = error_of_kind(kind, "The cause.", "Do this")
    ran = []
    session = collector.trace(source=source)
    with (
        pytest.warns(collector.CollectorWarning, match=r"not traced: The cause\. Do this") as caught,
        session as step,
        collector.annotate("op"),
    ):
        ran.append(True)
    assert ran
    assert len(caught) == 1
    assert step.unavailable == "The cause. Do this"
    assert source.calls == ["start"]
    assert (len(step.kernels), step.ledger.launches_seen) == (0, 0)
    assert (step.ledger.complete, step.ledger.losses()[0]) == (False, "nothing was traced")
    assert list(step.step_stats.dev_stats) == []
    assert "not traced: The cause. Do this" in step.summary()


@pytest.mark.parametrize(("kind", "error"), UNAVAILABLE.items())
def test_strict_raises_what_fits_the_cause_and_lets_go(source, kind, error):
    source.fail["start"] = error_of_kind(kind, "the cause", "Do this")
    with pytest.raises(error) as raised, collector.trace(source=source, strict=True):
        pytest.fail("the body ran")
    assert type(raised.value) is error
    assert (raised.value.cause, raised.value.remedy) == ("the cause", "Do this")
    del source.fail["start"]
    with collector.trace(source=source, strict=True) as step:
        pass
    assert step.unavailable is None


def test_the_warning_points_at_the_callers_line(source):
    source.fail["start"] = collector.DriverNotFoundError("none")
    line = traced.__code__.co_firstlineno + 2
    with pytest.warns(collector.CollectorWarning) as caught:
        traced(source)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_a_warning_made_an_error_leaves_no_session_open(source):
    source.fail["start"] = collector.DriverNotFoundError("none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(collector.CollectorWarning), collector.trace(source=source):
            pytest.fail("the body ran")
    del source.fail["start"]
    with collector.trace(source=source) as step:
        pass
    assert step.unavailable is None


def test_a_source_without_a_budget_says_so(source):
    missing = "the step has no budget of its own: the source 'fake' cannot keep one"
    with pytest.warns(collector.CollectorWarning, match=missing) as caught:
        step = traced(source, budget="1%")
    assert len(caught) == 1
    assert step.kernels.names() == ["add<float>"]


def test_a_strict_session_does_not_start_a_source_without_the_budget_that_it_asks_for(source):
    with pytest.raises(collector.NotTracedError, match="the source 'fake' cannot keep one"):
        never_runs(source, strict=True, budget="1%")
    assert source.calls == []


def test_a_warning_made_an_error_leaves_no_source_running(source, tmp_path):
    source.journal_trouble, source.remove_journal = str, lambda: source.calls.append("remove")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(collector.CollectorWarning, match="no budget of its own"):
            never_runs(source, budget="1%", journal=tmp_path / "step.journal")
    assert source.calls == ["start", "abort", "remove"]


def test_a_trace_lost_at_the_end_is_reported_and_strict_raises(source):
    source.fail["stop"] = collector.CuptiCallError("flush failed")
    with pytest.warns(collector.CollectorWarning, match="the trace is lost: flush failed"):
        step = traced(source)
    assert step.unavailable == "flush failed"
    assert source.calls == ["start", "stop", "abort"]
    assert len(step.kernels) == 0
    with pytest.raises(collector.CuptiCallError), collector.trace(source=source, strict=True):
        pass
    del source.fail["stop"]
    with collector.trace(source=source):
        pass


@pytest.mark.parametrize("when", ["start", "stop"])
def test_even_a_fault_of_our_own_does_not_stop_the_users_program(source, when):
    source.fail[when] = RuntimeError("a bug")
    with pytest.warns(collector.CollectorWarning, match="unexpected RuntimeError: a bug"):
        step = traced(source)
    assert step.unavailable == "unexpected RuntimeError: a bug"
    assert len(step.kernels) == 0
    with pytest.raises(RuntimeError, match="a bug"), collector.trace(source=source, strict=True):
        pass


def test_a_fault_where_annotations_end_lets_go_of_the_source(source, monkeypatch):
    def fail(stack):
        if stack is None:
            raise RuntimeError("a bug")

    monkeypatch.setattr("collector.tracing.task_steps.follow", fail)
    with pytest.warns(collector.CollectorWarning) as warned:
        step = traced(source)
    monkeypatch.undo()
    assert [str(each.message) for each in warned] == [
        "the trace is lost: unexpected RuntimeError: a bug",
        "the session could not be ended: unexpected RuntimeError: a bug",
    ]
    assert step.unavailable == "unexpected RuntimeError: a bug"
    assert source.calls == ["start", "abort"]
    with collector.trace(source=source, strict=True):
        pass


def test_a_capture_that_is_not_of_the_schema_is_a_lost_trace(source):
    del source.capture["tables"]["kernels"]
    with pytest.warns(collector.CollectorWarning, match="the trace is lost: unexpected ValueError"):
        step = traced(source)
    assert len(step.kernels) == 0


class BodyError(Exception):
    """The user's own."""


@pytest.mark.parametrize("strict", [False, True])
def test_an_exception_in_the_body_passes_unchanged_with_a_complete_trace(source, tmp_path, strict):
    mine = BodyError("mine")
    with pytest.raises(BodyError) as raised, collector.trace(tmp_path / "t.pb", source=source, strict=strict) as step:
        raise mine
    assert raised.value is mine
    assert raised.value.__context__ is None
    assert step.kernels.names() == ["add<float>"]
    assert (tmp_path / "t.pb").exists()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("trouble", [collector.CuptiCallError("ours"), RuntimeError("a bug of ours"), OSError("disk")])
def test_our_failure_never_hides_the_bodys_exception(source, strict, trouble):
    source.fail["stop"] = trouble
    mine = BodyError("mine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BodyError) as raised, collector.trace(source=source, strict=strict):
            raise mine
    assert raised.value is mine
    del source.fail["stop"]
    with collector.trace(source=source):
        pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exceptions_that_end_programs_pass_too(source, error):
    with pytest.raises(error), collector.trace(source=source) as step:
        raise error
    assert step.kernels.names() == ["add<float>"]


def test_a_session_within_another_runs_untraced_with_one_warning_and_the_outer_goes_on(source, fake_source):
    inner_source, ran = fake_source(), []
    with collector.trace(source=source) as outer:
        with (
            pytest.warns(collector.CollectorWarning, match="another session is already tracing") as caught,
            collector.trace(source=inner_source) as inner,
        ):
            ran.append("inner")
        with pytest.warns(collector.CollectorWarning, match="this session is already tracing"), outer:
            ran.append("the same")
        assert source.calls == ["start"]
        with pytest.raises(collector.NotTracedError, match="still being traced"):
            _ = outer.recording
    assert ran == ["inner", "the same"]
    assert len(caught) == 1
    assert (inner_source.calls, source.calls) == ([], ["start", "stop"])
    assert "another session is already tracing" in inner.unavailable
    assert (len(inner.kernels), inner.ledger.complete) == (0, False)
    assert outer.unavailable is None
    assert outer.kernels.names() == ["add<float>"]


def test_a_strict_session_within_another_is_refused_before_its_body(source, fake_source):
    with collector.trace(source=source, strict=True) as outer:
        with pytest.raises(collector.SessionActiveError, match="another session is already tracing"):
            never_runs(fake_source(), strict=True)
        with pytest.raises(collector.SessionActiveError, match="this session is already tracing"), outer:
            pytest.fail("the body ran")
    assert outer.kernels.names() == ["add<float>"]


def test_a_session_on_another_thread_runs_untraced_meanwhile(source, fake_source, tmp_path):
    reasons, waits = [], threading.Event()

    def join(thread: threading.Thread) -> None:
        waits.set()
        thread.join()

    def other() -> None:
        waits.wait(60)
        with collector.trace(source=fake_source()) as step:
            pass
        reasons.append(step.unavailable)

    with collector.trace(tmp_path / "outer.json", source=source):
        thread = threading.Thread(target=other)
        thread.start()
        with pytest.warns(collector.CollectorWarning, match="this step is not traced: another session"):
            join(thread)
    assert len(reasons) == 1
    assert "outer.json" in reasons[0]


@pytest.mark.filterwarnings("ignore:this step is not traced")
def test_of_many_threads_that_start_at_once_one_traces_and_the_rest_run_untraced(fake_source):
    everybody, results = threading.Barrier(8), []

    def work() -> None:
        everybody.wait(60)
        with collector.trace(source=fake_source()) as step:
            everybody.wait(60)
        results.append("untraced" if step.unavailable else "traced")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["traced"] + ["untraced"] * 7


def test_a_decorated_function_called_from_two_threads_traces_one_of_the_calls(source):
    both_inside, first_is_inside = threading.Barrier(2), threading.Event()

    @collector.trace(source=source)
    def step(number: int) -> int:
        first_is_inside.set()
        both_inside.wait(60)
        return number

    results = []

    def call_twice() -> None:
        threads = [threading.Thread(target=lambda number=number: results.append(step(number))) for number in range(2)]
        threads[0].start()
        first_is_inside.wait(60)
        threads[1].start()
        for thread in threads:
            thread.join()

    with pytest.warns(collector.CollectorWarning, match="this session is already tracing") as caught:
        call_twice()
    assert sorted(results) == [0, 1]
    assert len(caught) == 1
    assert source.calls == ["start", "stop"]
    assert step.session.kernels.names() == ["add<float>"]


def test_a_session_may_end_on_another_thread_than_it_began(source):
    session = collector.trace(source=source)
    session.__enter__()
    thread = threading.Thread(target=session.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert session.kernels.names() == ["add<float>"]


def test_a_session_is_used_again_and_forgets_its_last_results(source, fake_source):
    session = collector.trace(source=source)
    with session:
        pass
    first = session.step_stats
    assert len(first.dev_stats) == 4
    source.fail["start"] = collector.DriverNotFoundError("gone")
    with pytest.warns(collector.CollectorWarning), session:
        pass
    assert list(session.step_stats.dev_stats) == []
    assert session.unavailable == "gone"
    del source.fail["start"]
    with session:
        pass
    assert session.unavailable is None
    assert session.step_stats == first


@pytest.mark.parametrize("name", ["__exit__", "end_at_exit"])
def test_two_threads_that_end_a_session_at_once_end_it_once(source, tmp_path, monkeypatch, name):
    """As where the interpreter ends while a daemon thread leaves its step."""
    session = collector.trace(tmp_path / "t.pb", source=source)
    stop = source.stop

    def end_there_too(**options):
        monkeypatch.setattr(source, "stop", stop)
        arguments = (None, None, None) if name == "__exit__" else (session_slot.open_use(),)
        thread = threading.Thread(target=getattr(session, name), args=arguments)
        thread.start()
        thread.join()
        return stop(**options)

    monkeypatch.setattr(source, "stop", end_there_too)
    with session:
        pass
    assert source.calls == ["start", "stop"]
    assert session.unavailable is None
    assert files_of(tmp_path) == ["t.pb"]


def test_leaving_twice_does_nothing(source):
    with collector.trace(source=source) as step:
        pass
    step.__exit__(None, None, None)
    assert source.calls == ["start", "stop"]


def test_a_source_that_somebody_else_is_using_is_left_alone(source):
    source.fail["start"] = error_of_kind("already-active", "somebody traces")
    with pytest.warns(collector.CollectorWarning, match="somebody traces"):
        traced(source)
    with pytest.raises(collector.SessionActiveError, match="somebody traces"):
        never_runs(source, strict=True)
    assert source.calls == ["start"] * 2


# --- as a decorator


def test_a_decorated_function_is_traced_at_each_call(source):
    @collector.trace(source=source)
    def step(a: int, *, b: int) -> int:
        """Doc."""
        return a + b

    assert (step.__name__, step.__doc__) == ("step", "Doc.")
    assert step(1, b=2) == step(2, b=1) == 3
    assert source.calls == ["start", "stop"] * 2
    assert step.session.kernels.names() == ["add<float>"]


def test_the_decorator_without_parentheses_is_the_one_without_options(monkeypatch, source):
    monkeypatch.setattr("collector.tracing.step_tracer.open_source", lambda _: source)

    @collector.trace
    def step(a: int) -> int:
        return a

    @collector.trace
    async def coroutine(a: int) -> int:
        return a

    assert (step(1), asyncio.run(coroutine(2))) == (1, 2)
    assert source.calls == ["start", "stop"] * 2
    assert step.session.kernels.names() == ["add<float>"]


def test_options_beside_a_function_are_refused():
    with pytest.raises(TypeError, match=r"write @collector\.trace\(\.\.\.\)"):
        collector.trace(len, strict=True)


def test_a_session_can_be_entered_with_async_with(source):
    async def main() -> collector.Session:
        async with collector.trace(source=source) as step:
            await asyncio.sleep(0)
            assert source.calls == ["start"]
        return step

    assert asyncio.run(main()).kernels.names() == ["add<float>"]


def test_a_decorated_function_that_calls_itself_is_one_trace(source):
    @collector.trace(source=source)
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    assert factorial(5) == 120
    assert source.calls == ["start", "stop"]


def test_a_decorated_generator_is_traced_from_its_first_step_to_its_last(source):
    @collector.trace(source=source)
    def batches():
        got = yield 1
        yield got
        return "end"

    generator = batches()
    assert source.calls == []
    assert next(generator) == 1
    assert source.calls == ["start"]
    assert generator.send("x") == "x"
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert source.calls == ["start", "stop"]


def test_a_decorated_generator_that_is_closed_ends_its_trace(source):
    @collector.trace(source=source)
    def batches():
        yield 1

    generator = batches()
    next(generator)
    generator.close()
    assert source.calls == ["start", "stop"]


def test_a_decorated_coroutine_and_asynchronous_generator_are_traced(source):
    @collector.trace(source=source)
    async def step() -> int:
        await asyncio.sleep(0)
        return 5

    @collector.trace(source=source)
    async def stream():
        yield 1
        await asyncio.sleep(0)
        yield 2

    async def main() -> list[int]:
        return [await step(), *[value async for value in stream()]]

    assert inspect.iscoroutinefunction(step)
    assert asyncio.run(main()) == [5, 1, 2]
    assert source.calls == ["start", "stop"] * 2


@pytest.fixture
def asynchronous():
    """A function of its own kind, which says how it was resumed."""

    async def function(said: list[object]):
        """Doc."""
        try:
            said.append((yield 1))
            said.append((yield 2))
        except KeyError as error:
            said.append(error.args)
            yield 3
        finally:
            await asyncio.sleep(0)
            said.append("end")

    return function


@pytest.mark.parametrize("kind", ["none", "trace", "annotate", "both"])
def test_a_decorated_asynchronous_generator_is_resumed_as_the_function_is(source, asynchronous, kind):
    function = asynchronous
    if kind in ("annotate", "both"):
        function = collector.annotate("op")(function)
    if kind in ("trace", "both"):
        function = collector.trace(source=source)(function)
    assert inspect.isasyncgenfunction(function)
    assert (function.__name__, function.__doc__) == ("function", "Doc.")

    async def sent() -> list[object]:
        said: list[object] = []
        generator = function(said)
        said.append(await generator.__anext__())
        said.append(await generator.asend("sent"))
        with pytest.raises(StopAsyncIteration):
            await generator.asend("last")
        return said

    async def thrown() -> list[object]:
        said: list[object] = []
        generator = function(said)
        said.append(await generator.__anext__())
        said.append(await generator.athrow(KeyError("thrown")))
        with pytest.raises(ZeroDivisionError):
            await generator.athrow(ZeroDivisionError())
        return said

    async def closed() -> list[object]:
        said: list[object] = []
        generator = function(said)
        said.append(await generator.__anext__())
        await generator.aclose()
        with pytest.raises(StopAsyncIteration):
            await generator.__anext__()
        return said

    async def forgotten() -> list[object]:
        said: list[object] = []
        async for value in function(said):
            said.append(value)
            break
        for _ in range(20):  # the loop closes it
            await asyncio.sleep(0)
        return said

    async def main() -> None:
        assert await sent() == [1, "sent", 2, "last", "end"]
        assert await thrown() == [1, ("thrown",), 3, "end"]
        assert await closed() == [1, "end"]
        assert await forgotten() == [1, "end"]

    asyncio.run(main())
    assert source.calls == (["start", "stop"] * 4 if kind in ("trace", "both") else [])


def test_decorators_name_and_trace_an_asynchronous_generator_together(source):
    @collector.trace(source=source)
    @collector.annotate("outer")
    @collector.annotate("inner")
    async def stream():
        assert source.calls == ["start"]
        yield source.paths[-1]

    async def main() -> list[object]:
        return [value async for value in stream()]

    assert asyncio.run(main()) == ["outer/inner"]
    assert source.calls == ["start", "stop"]


def recursive_functions(session: collector.Session) -> dict[str, Callable[[int], object]]:
    """Functions of each kind that call themselves; each returns a list of numbers, counting down."""

    @session
    async def coroutine(number: int) -> list[int]:
        await asyncio.sleep(0)
        inner = asyncio.create_task(coroutine(number - 1)) if number == 2 else coroutine(number - 1) if number else None
        return [number, *(await inner if inner else [])]

    @session
    def generator(number: int):
        yield number
        if number:
            yield from generator(number - 1)

    @session
    async def asynchronous(number: int):
        yield number
        if number:
            async for each in asynchronous(number - 1):
                yield each

    async def listed(number: int) -> list[int]:
        return [each async for each in asynchronous(number)]

    return {
        "coroutine": lambda number: asyncio.run(coroutine(number)),
        "generator": lambda number: list(generator(number)),
        "asynchronous": lambda number: asyncio.run(listed(number)),
    }


@pytest.mark.parametrize("kind", ["coroutine", "generator", "asynchronous"])
def test_a_decorated_coroutine_or_generator_that_calls_itself_is_one_trace(source, kind):
    function = recursive_functions(collector.trace(source=source, strict=True))[kind]
    assert function(3) == [3, 2, 1, 0]
    assert source.calls == ["start", "stop"]
    assert function(0) == [0]
    assert source.calls == ["start", "stop"] * 2


def test_a_call_between_the_runs_of_a_traced_body_is_not_part_of_it(source):
    @collector.trace(source=source)
    def generator():
        yield 1

    first, second = generator(), generator()
    next(first)
    with pytest.warns(collector.CollectorWarning, match="this session is already tracing"):
        next(second)

    session = collector.trace(source=source)

    @session
    async def coroutine(until: asyncio.Event | None = None) -> None:
        if until is not None:
            await until.wait()

    @session
    def plain() -> None:
        pass

    async def others() -> None:
        with pytest.warns(collector.CollectorWarning, match="this session is already tracing"):
            await coroutine()
        with pytest.warns(collector.CollectorWarning, match="this session is already tracing"):
            plain()

    async def main() -> None:
        until = asyncio.Event()
        task = asyncio.create_task(coroutine(until))
        await asyncio.sleep(0)
        await others()
        until.set()
        await task

    first.close()
    asyncio.run(main())


# --- files


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.fixture(params=["native", "plain"])
def converter(request, monkeypatch):
    """With the native converter and with its twin in Python."""
    if request.param == "plain":
        use_python(monkeypatch)


@pytest.mark.usefixtures("converter")
@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "T.JSON"])
def test_a_chrome_trace_is_written_where_the_suffix_says_so(source, tmp_path, name):
    with collector.trace(tmp_path / name, source=source):
        pass
    trace = json.loads(read(tmp_path / name))
    devices = {event["args"]["device"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert devices >= {"/gpu:0/stream:7", "/gpu:0/memcpy"}
    assert trace["otherData"]["simulated"] is True
    assert trace["otherData"]["ledger"]["launches_seen"] == 1
    assert files_of(tmp_path) == [name]


@pytest.mark.parametrize("name", ["t.json", "t.pftrace", "t.pb"])
def test_without_the_extension_one_error_names_cause_and_remedy(source, tmp_path, monkeypatch, name):
    """What is recorded is kept: a .gpurec needs no extension."""
    step = traced(source)
    monkeypatch.setitem(sys.modules, "collector._convert", None)
    monkeypatch.delattr(collector, "_convert", raising=False)
    load_extension.cache_clear()
    try:
        with pytest.raises(collector.MissingDependencyError, match=r"collector\._convert cannot be loaded .* pip"):
            step.save(tmp_path / name)
        step.save(tmp_path / "t.gpurec")
    finally:
        load_extension.cache_clear()
    assert files_of(tmp_path) == ["t.gpurec"]


def test_run_metadata_is_written_binary_and_as_text(source, tmp_path):
    with collector.trace(tmp_path / "t.pb", source=source) as step:
        pass
    step.save(tmp_path / "t.pbtxt")
    assert RunMetadata.FromString((tmp_path / "t.pb").read_bytes()) == step.run_metadata
    assert text_format.Parse((tmp_path / "t.pbtxt").read_text(), RunMetadata()) == step.run_metadata


def test_the_recording_itself_is_written_and_replays(source, tmp_path):
    with collector.trace(str(tmp_path / "t.gpurec"), source=source) as step:
        pass
    recording = Recording.load(tmp_path / "t.gpurec")
    with collector.trace(source=ReplaySource(recording)) as again:
        pass
    assert list(again.kernels) == list(step.kernels)
    assert again.run_metadata.provenance.source == "replay"


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".pb", ".pbtxt", ".gpurec"])
def test_the_same_step_makes_the_same_bytes(source, tmp_path, suffix):
    source.capture["environment"]["thread_names"] = {"11": "main"}
    with collector.trace(source=source) as step:
        pass
    step.save(tmp_path / f"a{suffix}")
    with collector.trace(source=source) as step:
        pass
    step.save(tmp_path / f"b{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["t.txt", "t", "t.json.bz2", ".json", "t.gz"])
def test_an_unknown_suffix_is_refused_before_anything_runs(name):
    with pytest.raises(collector.UnknownFormatError, match=r"no format.*\.json") as raised:
        collector.trace(name)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("name", ["runs", "runs/", "new/"])
def test_a_folder_as_the_path_is_answered_with_the_option_for_datasets(tmp_path, name):
    (tmp_path / "runs").mkdir()
    with pytest.raises(collector.UnknownFormatError) as raised:
        collector.trace(f"{tmp_path}/{name}")
    remedy = f"Name a file in it, or add the step to a dataset: trace(dataset={f'{tmp_path}/{name}'!r})"
    assert str(raised.value) == f"{tmp_path}/{name} is a folder. {remedy}"


def test_an_empty_path_is_no_folder():
    with pytest.raises(collector.UnknownFormatError, match=r"^the name of the file is empty\. Give it one, such as"):
        collector.trace("")


def test_a_path_that_cannot_be_written_is_reported_before_the_body_and_costs_only_the_file(source, tmp_path):
    warned = []
    session = collector.trace(tmp_path / "absent" / "t.json", source=source)
    with (
        pytest.warns(collector.CollectorWarning, match=r"will not be saved.*does not exist") as caught,
        session as step,
    ):
        warned.extend(caught)
    assert len(warned) == len(caught) == 1
    assert step.unavailable is None
    assert step.kernels.names() == ["add<float>"]
    step.save(tmp_path / "t.json")


def test_a_dataset_that_cannot_be_written_is_reported_before_the_body(source, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "notes.txt").touch()
    with pytest.warns(
        collector.CollectorWarning, match="will not be in the dataset: .* is not a dataset, and not empty"
    ):
        session = collector.trace(source=source, dataset=tmp_path).start()
    session.stop()  # where a warning would be an error
    assert list(tmp_path.iterdir()) == [tmp_path / "notes.txt"]
    with pytest.raises(collector.OutputError, match="is not a dataset, and not empty"):
        collector.trace(source=source, dataset=tmp_path, strict=True).start()


@pytest.mark.parametrize("where", ["folder.json", "file.json/t.json", "absent/t.json"])
def test_strict_raises_for_a_path_that_cannot_be_written_before_the_body(source, tmp_path, where):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "file.json").touch()
    with pytest.raises(collector.OutputError, match="cannot write"):
        never_runs(source, tmp_path / where, strict=True)
    assert source.calls == []
    with collector.trace(source=source):
        pass


def test_a_disk_that_fills_up_costs_only_the_file_and_keeps_the_one_before(source, tmp_path, monkeypatch):
    path = tmp_path / "t.pb"
    path.write_bytes(b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(collector.CollectorWarning, match="not saved: cannot write .*No space left"):
        step = traced(source, path)
    assert step.kernels.names() == ["add<float>"]
    assert path.read_bytes() == b"before"
    assert files_of(tmp_path) == ["t.pb"]
    with pytest.raises(collector.OutputError, match="No space left"), collector.trace(path, source=source, strict=True):
        pass


@pytest.mark.parametrize("why", ["would take .* more than the 2 GiB that a protobuf message can be", "No space left"])
def test_a_step_whose_file_cannot_be_written_is_in_a_recording_beside_it(source, tmp_path, monkeypatch, why):
    if why == "No space left":
        replace = Path.replace

        def full_for_all_but_recordings(path, target):
            if not str(target).endswith(".gpurec"):
                raise OSError(28, why)
            return replace(path, target)

        monkeypatch.setattr(Path, "replace", full_for_all_but_recordings)
    else:
        monkeypatch.setattr(message_size, "MAX_MESSAGE_BYTES", 100)
    with pytest.warns(collector.CollectorWarning, match=f"the trace is in .*t.pb.gpurec instead: .*{why}"):
        step = traced(source, tmp_path / "t.pb")
    assert files_of(tmp_path) == ["t.pb.gpurec"]
    assert step.path == tmp_path / "t.pb.gpurec"
    assert collector.load(step.path).kernels.names() == ["add<float>"]
    step.path.unlink()
    with pytest.raises(collector.OutputError, match=why):
        traced(source, tmp_path / "t.pb", strict=True)
    assert files_of(tmp_path) == ["t.pb.gpurec"]


def test_a_path_that_is_lost_during_the_step_leaves_a_recording(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PLACE", "here")
    session = collector.trace(tmp_path / "{env:PLACE}.pb", source=source, strict=True)
    with pytest.raises(collector.OutputError, match="the environment variable PLACE is not set"), session:
        monkeypatch.delenv("PLACE")
    assert files_of(tmp_path) == ["here.pb.gpurec"]
    assert session.path == tmp_path / "here.pb.gpurec"


@pytest.fixture
def rank(monkeypatch):
    """Makes this process the given rank of 16, as torchrun does."""

    def become(number: int, world_size: int = 16) -> None:
        monkeypatch.setenv("RANK", str(number))
        monkeypatch.setenv("WORLD_SIZE", str(world_size))

    return become


def test_every_rank_writes_a_file_of_its_own_and_says_so_once(source, tmp_path, monkeypatch, rank):
    rank(3)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(collector.CollectorWarning, match=r"rank 3 of 16: .*step\.rank3\.json\.gz") as caught:
        step = traced(source, "step.json.gz")
    assert len(caught) == 1
    assert step.path == Path("step.rank3.json.gz")
    traced(source, "step.json.gz")
    assert files_of(tmp_path) == ["step.rank3.json.gz"]


def test_a_path_of_numbered_steps_is_warned_of_once(source, tmp_path, rank):
    rank(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = collector.trace(tmp_path / "w{step}.pb", source=source, schedule=collector.every(steps=1))
        with session:
            for _ in range(5):
                session.step()
        for number in range(5):
            traced(source, tmp_path / f"u{number}.pb")
    written = files_of(tmp_path)
    assert {"w0.rank3.pb", "w4.rank3.pb", "u0.rank3.pb", "u4.rank3.pb"} <= set(written)
    named = [re.findall(r"\w+\.rank3\.pb", str(each.message)) for each in caught]
    assert named == [["w0.rank3.pb"], ["u0.rank3.pb"]]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("t_3.pb", "t_3.rank3.pb"),
        ("resnet3.pb", "resnet3.rank3.pb"),
        ("worker-3.pb", "worker-3.pb"),
        ("t.rank03.pb", "t.rank03.pb"),
        ("rank3-of-16.pb", "rank3-of-16.pb"),
        ("rank_3/t.pb", "rank_3/t.pb"),
        ("t1.pb", "t1.rank3.pb"),
        ("t13.pb", "t13.rank3.pb"),
        ("run3/t.pb", "run3/t.rank3.pb"),
    ],
)
@pytest.mark.filterwarnings("ignore:this is rank")
def test_a_path_that_names_the_rank_is_taken_as_it_is(source, tmp_path, rank, given, written):
    rank(3)
    (tmp_path / given).parent.mkdir(exist_ok=True)
    step = traced(source, tmp_path / given)
    assert step.path == tmp_path / written
    assert step.path.exists()


@pytest.mark.filterwarnings("ignore:this is rank")
def test_the_option_says_the_rank_where_the_environment_does_not(source, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert traced(source, tmp_path / "t.pb", rank=2).path.name == "t.rank2.pb"


@pytest.mark.parametrize(("number", "world_size"), [("0", "1"), ("3", "many"), ("three", "16"), ("3", "")])
def test_a_process_by_itself_writes_what_it_was_given(source, tmp_path, rank, number, world_size):
    rank(number, world_size)
    assert traced(source, tmp_path / "t.pb").path == tmp_path / "t.pb"
    assert files_of(tmp_path) == ["t.pb"]


def test_a_process_that_meets_a_file_of_another_one_of_the_run_leaves_it(source, fake_source, tmp_path):
    path = tmp_path / "t.pb"
    traced(source, path)
    try:
        os.getxattr(path, "user.collector.writer")
    except OSError as error:
        pytest.skip(f"NOT TESTED, this file system keeps no attributes: {error}")
    before = path.read_bytes()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                written = [traced(fake_source(), path).path.name for _ in range(2)]
            is_warned = len(caught) == 1 and "another process of this run" in str(caught[0].message)
            status = not (is_warned and written == [f"t.pid{os.getpid()}.pb"] * 2)
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert files_of(tmp_path) == ["t.pb", f"t.pid{child}.pb"]
    assert path.read_bytes() == before
    traced(source, path)
    assert files_of(tmp_path) == ["t.pb", f"t.pid{child}.pb"]


def test_a_file_of_an_earlier_run_is_replaced(source, tmp_path, monkeypatch):
    path = tmp_path / "t.pb"
    traced(source, path)
    monkeypatch.setattr("collector.formats.output_paths._STARTED_NS", time.time_ns() + 1_000_000_000)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert traced(source, path).path == path


def test_nothing_is_written_when_nothing_was_traced(source, tmp_path):
    source.fail["start"] = collector.DriverNotFoundError("none")
    with pytest.warns(collector.CollectorWarning), collector.trace(tmp_path / "t.json", source=source):
        pass
    assert files_of(tmp_path) == []


# --- forks, the interpreter's end, other profilers


def test_a_forked_child_is_inert_and_the_parents_trace_is_whole(source, tmp_path):
    read_end, write_end = os.pipe()
    with collector.trace(tmp_path / "t.pb", source=source) as step:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with collector.annotate("in the child"):
                    pass
                step.__exit__(None, None, None)
                state = f"{source.calls} {source.paths} {step.unavailable} {files_of(tmp_path)} {step.ledger.losses()}"
                os.write(write_end, state.encode())
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    os.close(write_end)
    state = os.read(read_end, 4096).decode()
    os.close(read_end)
    forked = "this process was forked while the trace was open; its parent has the trace"
    assert state == f"['start'] [] {forked} [] ['nothing was traced']"
    assert step.kernels.names() == ["add<float>"]
    assert (tmp_path / "t.pb").exists()


def test_a_forked_child_can_trace_on_its_own(source, fake_source):
    with collector.trace(source=source):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with collector.trace(source=fake_source()) as own:
                    pass
                status = own.unavailable is not None
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.medium
def test_a_session_still_open_when_the_interpreter_ends_is_let_go(tmp_path):
    done = run_python("""
        import collector

        class Source:
            name = "fake"
            def start(self, options): print("start")
            def stop(self, **_): print("stop")
            def abort(self): print("abort")
            def push_annotation(self, path): pass
            def pop_annotation(self): pass

        collector.trace(source=Source()).__enter__()
    """)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["start", "abort"], "")


def test_a_broken_off_session_ends_without_results_and_says_so(source):
    source.fail["stop"] = KeyboardInterrupt()
    step = collector.trace(source=source)
    with pytest.raises(KeyboardInterrupt), step:
        pass
    assert source.calls == ["start", "stop", "abort"]
    assert step.unavailable == "the step was broken off where it began or ended"
    assert step.ledger.losses() == ["nothing was traced"]
    del source.fail["stop"]
    with step:
        pass
    assert step.kernels.names() == ["add<float>"]


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [
        (["kernels"], "external_correlations and runtime_api or driver_api"),
        (["kernels", "runtime_api"], "external_correlations"),
        (["kernels", "external_correlations"], "runtime_api or driver_api"),
    ],
)
def test_kinds_without_what_annotations_need_are_reported_at_the_first_annotation(source, kinds, missing):
    with collector.trace(source=source, kinds=kinds):
        with (
            pytest.warns(
                collector.CollectorWarning, match=f"name only the nodes of CUDA graphs in this trace: add {missing} to"
            ) as caught,
            collector.annotate("a"),
        ):
            pass
        with collector.annotate("b"):
            pass
    assert [each.filename for each in caught] == [__file__]
    assert source.paths == ["a", None, "b", None]


def test_kinds_without_what_annotations_need_are_nobodys_business_without_annotations(source):
    traced(source, kinds=["kernels"])


def test_a_kind_that_ties_launches_to_annotations_is_enough(source):
    with (
        collector.trace(source=source, kinds=["kernels", "external_correlations", "driver_api"]),
        collector.annotate("a"),
    ):
        pass


def test_names_that_are_left_out_of_order_are_counted_and_warned_of(source):
    def cross() -> None:
        one, two = collector.annotate("one"), collector.annotate("two")
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        two.__exit__(None, None, None)

    with (
        pytest.warns(
            collector.CollectorWarning, match=r"took turns inside annotations .*Decorate the coroutine"
        ) as caught,
        collector.trace(source=source) as step,
    ):
        cross()
    assert len(caught) == 1
    assert step.ledger.annotations_mixed > 0
    assert not step.ledger.complete


def test_tasks_that_hold_no_annotation_while_they_wait_mix_nothing_up(source):
    @collector.annotate("decorated")
    async def task(name: str) -> None:
        for _ in range(2):
            with collector.annotate(name), collector.annotate("inner"):
                pass
            await asyncio.sleep(0)

    async def alone() -> None:
        with collector.annotate("alone"):
            await asyncio.sleep(0)
            with collector.annotate("inner"):
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(task(name) for name in "abc"))
        await alone()
        with collector.annotate("a"):
            await asyncio.to_thread(collector.annotate("in a thread")(lambda: None))

    with collector.trace(source=source) as step:
        asyncio.run(main())
    assert step.ledger.annotations_mixed == 0
    assert step.ledger.complete


def test_importing_the_package_imports_nothing_heavy():
    done = run_python("""
        import sys, collector
        heavy = {"numpy", "google.protobuf", "rich", "collector._native", "asyncio"} & set(sys.modules)
        assert not heavy, heavy
        collector.trace
        assert "numpy" not in sys.modules and "google.protobuf" not in sys.modules
        assert set(collector.__all__) <= set(dir(collector))
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_public_name_is_there_and_others_are_not():
    for name in collector.__all__:
        assert getattr(collector, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'tracer'"):
        _ = collector.tracer


def torch_with_profiler(running: bool) -> types.ModuleType:
    torch = types.ModuleType("torch")
    profiler = types.SimpleNamespace(_is_profiler_enabled=running)
    torch.autograd = types.SimpleNamespace(profiler=profiler)
    return torch


@pytest.mark.parametrize(("running", "shared"), [(False, True), (True, False)])
def test_the_subscription_that_torch_keeps_is_no_obstacle_while_its_profiler_is_idle(
    source, monkeypatch, running, shared
):
    monkeypatch.setitem(sys.modules, "torch", torch_with_profiler(running))
    with collector.trace(source=source):
        pass
    assert source.options.share_subscription is shared


def test_without_torch_the_subscription_is_ours_alone(source, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with collector.trace(source=source):
        pass
    assert source.options.share_subscription is False


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        TraceOptions().strict = True


@pytest.mark.parametrize("name", ["strict", "synchronize", "stacks", "stream", "counters", "git_revision"])
@pytest.mark.parametrize("value", ["yes", None, 2, []])
def test_an_option_that_is_on_or_off_takes_nothing_else(name, value):
    with pytest.raises(TypeError, match=re.escape(f"{name} takes True or False, not {value!r}")):
        collector.trace(**{name: value})


@pytest.mark.parametrize("value", [1, np.True_])
def test_an_option_that_is_on_or_off_takes_other_truth_values(value):
    assert TraceOptions(stacks=value).stacks is True
