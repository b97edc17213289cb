"""annotate(): nesting, threads, tasks, generators, sessions that begin and end around it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import inspect
import os
import pickle
import sys
import threading
import weakref

import pytest
from launch_log import Log

import collector
from collector.recording.annotation_details import Details, resolve
from collector.testing import SimulatedGpu
from collector.tracing import annotate as annotate_module
from collector.tracing import known_details
from collector.tracing.annotate import annotate, forget_annotations, send_annotations_to


@pytest.fixture
def log():
    log = Log()
    send_annotations_to(log)
    yield log
    send_annotations_to(None)
    assert log.stack == []


def test_annotations_nest_by_slash(log):
    with annotate("layer1"):
        log.launch("a")
        with annotate("conv"):
            log.launch("b")
        with annotate("bias/add"):
            log.launch("c")
        log.launch("d")
    log.launch("e")
    assert log.launched == [
        ("a", "layer1"),
        ("b", "layer1/conv"),
        ("c", "layer1/bias/add"),
        ("d", "layer1"),
        ("e", ""),
    ]


@pytest.mark.parametrize("name", ["", "/", " ", "//", " / "])
def test_an_empty_name_is_refused_where_it_is_written(name):
    with pytest.raises(ValueError, match="needs a name"):
        annotate(name)


@pytest.mark.parametrize("name", [None, 3, b"conv"])
def test_a_name_that_is_not_text_is_refused(name):
    with pytest.raises(TypeError, match="is text"):
        annotate(name)


def test_a_decorator_without_a_name_is_answered_with_how_to_write_it():
    with pytest.raises(TypeError, match=r"is text, not a function: write @annotate\('update'\) above it$"):

        @annotate
        def update():
            pass

    with pytest.raises(TypeError, match=r"is text, not the class dict: give a name, and decorate methods$"):
        annotate(dict)


@pytest.mark.parametrize(
    ("decorated", "message"),
    [
        (staticmethod(len), "a staticmethod is no function: write this decorator below it"),
        (classmethod(len), "a classmethod is no function: write this decorator below it"),
        (property(len), "a property is no function: write this decorator below it"),
        (dict, "dict is a class, which a wrapper would replace by a function: decorate its methods, such as __init__"),
    ],
)
@pytest.mark.parametrize("decorate", [annotate("net"), collector.trace()], ids=["annotate", "trace"])
def test_what_is_no_function_is_not_decorated(decorate, decorated, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        decorate(decorated)


def test_an_exception_leaves_the_annotation(log):
    with pytest.raises(KeyError), annotate("op"):
        raise KeyError
    log.launch("after")
    assert log.launched == [("after", "")]


def test_a_decorated_function_keeps_its_face_and_is_annotated_at_each_call(log):
    @annotate("update")
    def update(kernel: str, *, times: int = 1) -> int:
        """Doc."""
        log.launch(kernel)
        return times

    assert (update.__name__, update.__doc__) == ("update", "Doc.")
    assert update("a", times=3) == 3
    with annotate("outer"):
        update("b")
    assert log.launched == [("a", "update"), ("b", "outer/update")]


def test_a_decorated_function_may_recurse(log):
    @annotate("f")
    def f(depth: int) -> None:
        log.launch(str(depth))
        if depth:
            f(depth - 1)

    f(2)
    assert log.launched == [("2", "f"), ("1", "f/f"), ("0", "f/f/f")]


class Named(annotate):
    """A subclass with attributes of its own."""


@pytest.mark.parametrize("of_it", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize("kind", [annotate, Named])
def test_a_copy_of_an_annotation_that_was_entered_names_its_own_block(log, of_it, kind):
    """Models that have annotations are copied and saved, also once a step of theirs was traced."""
    original = kind("op", flops=8)
    if kind is Named:
        original.layer = 3
    with original:
        log.launch("a")
        inside = of_it(original)
        with inside:
            log.launch("b")
        log.launch("c")
    after = of_it(original)
    with after:
        log.launch("d")
    log.launch("e")
    assert log.launched == [("a", "op"), ("b", "op/op"), ("c", "op"), ("d", "op"), ("e", "")]
    assert type(after) is kind
    assert vars(after) == {"layer": 3} if kind is Named else not hasattr(after, "__dict__")


def test_one_object_can_be_entered_again_inside_itself_and_later(log):
    op = annotate("op")
    with op:
        with op:
            log.launch("a")
        log.launch("b")
    with op:
        log.launch("c")
    assert log.launched == [("a", "op/op"), ("b", "op"), ("c", "op")]


def test_threads_nest_on_their_own(log):
    op = annotate("shared")
    barrier = threading.Barrier(2)

    def work(name: str) -> None:
        with op:
            barrier.wait()
            with annotate(name):
                barrier.wait()
                log.launch(name)
                barrier.wait()
        assert log.stack == []

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    with annotate("main"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(log.launched) == [("one", "shared/one"), ("two", "shared/two")]


def test_nothing_reaches_a_source_while_nothing_is_traced():
    log = Log()
    with annotate("off"):
        pass
    send_annotations_to(log)
    send_annotations_to(None)
    with annotate("off again"):
        pass
    assert log.pushes == 0


def test_an_annotation_entered_before_the_trace_does_not_disturb_it():
    log = Log()
    with annotate("before"):
        send_annotations_to(log)
        with annotate("inside"):
            log.launch("a")
    send_annotations_to(None)
    assert log.launched == [("a", "inside")]
    assert log.stack == []


def test_an_annotation_left_after_the_trace_was_closed_with_it():
    log = Log()
    send_annotations_to(log)
    with annotate("outer"), annotate("inner"):
        send_annotations_to(None)
        assert log.stack == []
    assert log.stack == []


def test_an_annotation_that_outlives_the_trace_on_another_thread_is_closed_when_it_is_left():
    log, entered, ended, stacks = Log(), threading.Event(), threading.Event(), []

    def work() -> None:
        with annotate("worker"):
            entered.set()
            ended.wait(600)
            stacks.append(list(log.stack))
        stacks.append(list(log.stack))

    thread = threading.Thread(target=work)
    send_annotations_to(log)
    thread.start()
    entered.wait(600)
    send_annotations_to(None)
    ended.set()
    thread.join()
    assert stacks == [["worker"], []]


@pytest.mark.parametrize("details", [{}, {"flops": 1.0}])
def test_an_object_that_another_thread_enters_in_an_earlier_trace_at_the_same_time_is_left(details):
    first, second = Log(), Log()
    op = annotate("shared", **details)
    send_annotations_to(first)
    with op:
        earlier = op._stack
    send_annotations_to(second)
    with op:
        op._stack = earlier  # as the other thread notes it, which had asked for the trace before the second one began
    second.launch("a")
    send_annotations_to(None)
    assert second.launched == [("a", "")]
    assert second.stack == []


def test_an_annotation_left_in_the_next_trace_belongs_to_the_first_alone():
    first, second = Log(), Log()
    send_annotations_to(first)
    with annotate("first"):
        send_annotations_to(second)
        with annotate("second"):
            second.launch("a")
    send_annotations_to(None)
    assert second.launched == [("a", "second")]
    assert (first.stack, second.stack) == ([], [])


def test_an_annotation_entered_before_a_fork_touches_nothing_when_left_in_the_child(log):
    op = annotate("op")
    op.__enter__()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            forget_annotations()
            op.__exit__(None, None, None)
            status = log.stack != ["op"]
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    op.__exit__(None, None, None)


def test_annotations_left_out_of_order_name_what_is_still_open(log):
    one, two = annotate("one"), annotate("two")
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    log.launch("a")
    two.__exit__(None, None, None)
    log.launch("b")
    assert log.launched == [("a", "one/two"), ("b", "")]


def test_a_decorated_generator_is_annotated_only_while_it_runs(log):
    @annotate("batches")
    def batches():
        log.launch("first")
        got = yield 1
        log.launch(got)
        yield 2
        return "end"

    assert inspect.isgeneratorfunction(batches)
    generator = batches()
    assert next(generator) == 1
    log.launch("between")
    with annotate("step"):
        assert generator.send("second") == 2
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert log.launched == [("first", "batches"), ("between", ""), ("second", "step/batches")]
    assert log.pushes == 4  # one for each time it ran, and the step


def test_what_is_thrown_into_a_decorated_generator_reaches_it(log):
    @annotate("g")
    def g():
        try:
            yield 1
        except KeyError:
            log.launch("caught")
            yield 2

    generator = g()
    next(generator)
    assert generator.throw(KeyError()) == 2
    with pytest.raises(ZeroDivisionError):
        generator.throw(ZeroDivisionError())
    assert log.launched == [("caught", "g")]


def test_closing_or_forgetting_a_decorated_generator_runs_its_cleanup_once(log):
    @annotate("g")
    def g(name: str):
        try:
            yield 1
        finally:
            log.launch(name)

    generator = g("closed")
    next(generator)
    generator.close()
    generator = g("forgotten")
    next(generator)
    del generator
    gc.collect()
    assert log.launched == [("closed", "g"), ("forgotten", "g")]


def test_a_with_block_around_a_yield_does_not_upset_the_stack(log):
    def g():
        with annotate("inside"):
            yield

    one, two = g(), g()
    next(one)
    next(two)
    one.close()
    with annotate("caller"):
        pass
    two.close()
    log.launch("after")
    assert log.launched == [("after", "")]


def test_tasks_that_take_turns_on_one_thread_do_not_nest_in_each_other(log):
    async def task(name: str) -> None:
        with annotate(name):
            await asyncio.sleep(0)
            with annotate("inner"):
                log.launch(name)
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(task(name) for name in "abc"))

    asyncio.run(main())
    assert sorted(log.launched) == [("a", "a/inner"), ("b", "b/inner"), ("c", "c/inner")]


def test_a_decorated_coroutine_is_annotated_only_while_it_runs(log):
    @annotate("work")
    async def work(name: str) -> str:
        log.launch(name)
        await asyncio.sleep(0)
        log.launch(name)
        return name

    @annotate("idle")
    async def idle() -> None:
        for _ in range(3):
            log.launch("idle")
            await asyncio.sleep(0)

    assert inspect.iscoroutinefunction(work)

    async def main() -> list[str]:
        return await asyncio.gather(work("a"), idle(), work("b"))

    assert asyncio.run(main()) == ["a", None, "b"]
    assert set(log.launched) == {("a", "work"), ("b", "work"), ("idle", "idle")}
    assert len(log.launched) == 7


def test_a_decorated_coroutine_lets_exceptions_and_cancellation_through(log):
    @annotate("fails")
    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("mine")

    @annotate("waits")
    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            log.launch("cleanup")

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            await fails()
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log.launched == [("cleanup", "waits")]


def test_a_decorated_asynchronous_generator_is_annotated_only_while_it_runs(log):
    @annotate("stream")
    async def stream():
        for name in ("a", "b"):
            log.launch(name)
            yield name
            await asyncio.sleep(0)

    async def main() -> None:
        async for name in stream():
            log.launch(f"between {name}")

    asyncio.run(main())
    assert log.launched == [("a", "stream"), ("between a", ""), ("b", "stream"), ("between b", "")]


def test_annotate_is_the_packages_own():
    assert collector.annotate is annotate


class DetailsLog(Log):
    """A source that also keeps the numbers of details."""

    def __init__(self) -> None:
        super().__init__()
        self.pushed: list[tuple[str, int]] = []

    def push_annotation(self, path: str, details: int = 0) -> None:
        self.pushed.append((path, details))
        super().push_annotation(path)


def _noted(source: DetailsLog, use, **options) -> list[tuple[str, Details | None]]:
    """What reached the source of the annotations that ``use`` makes."""
    send_annotations_to(source, **options)
    use()
    details = list(send_annotations_to(None).details)
    return [(path, details[number - 1] if number else None) for path, number in source.pushed]


def test_metadata_of_an_op_reaches_the_source_once_and_by_number():
    def use() -> None:
        for _ in range(2):
            with annotate("a", flops=2e6, bytes=10, op="MatMul", inputs=["x", "y"]):
                pass
        with annotate("a"):
            pass

    product = Details(2_000_000, 10, "MatMul", ("x", "y"))
    source = DetailsLog()
    assert _noted(source, use) == [("a", product), ("a", product), ("a", None)]
    assert [number for _, number in source.pushed] == [1, 1, 0]


def test_a_source_that_knows_no_details_serves_annotations_without_any():
    source = Log()
    source.push_annotation = lambda path: source.launch(path)  # the signature there was before
    source.pop_annotation = lambda: None
    send_annotations_to(source)
    with annotate("a"):
        pass
    send_annotations_to(None)
    assert source.launched == [("a", "")]


def test_the_stack_is_that_of_the_block_without_our_own_frames():
    def use() -> None:
        with annotate("block", stack=True):
            decorated()

    @annotate("function", stack=True)
    def decorated() -> None:
        pass

    (_, block), (_, function) = _noted(DetailsLog(), use)
    assert [frame.function for frame in block.stack[-2:]] == ["_noted", "use"]
    assert block.stack[-1].first_line == use.__code__.co_firstlineno
    assert function.stack[-1].function == "use"
    assert function.stack[-1].line == block.stack[-1].line + 1
    assert not any(frame.file.endswith("collector/tracing/annotate.py") for frame in function.stack)


def test_a_trace_can_ask_for_all_stacks():
    def use() -> None:
        with annotate("a"):
            pass

    ((_, details),) = _noted(DetailsLog(), use, stacks=True)
    assert details.stack[-1].function == "use"
    assert _noted(DetailsLog(), use) == [("a", None)]


def test_flops_of_what_waits_and_goes_on_count_once():
    @annotate("g", flops=5, op="Sum", inputs=["x"])
    def g():
        yield 1
        yield 2

    @annotate("c", bytes=7)
    async def c() -> None:
        await asyncio.sleep(0)

    @annotate("s", flops=3)
    async def s():
        yield 1

    async def main() -> None:
        await c()
        async for _ in s():
            pass

    def use() -> None:
        assert list(g()) == [1, 2]
        asyncio.run(main())

    noted = _noted(DetailsLog(), use)
    assert [details.flops for path, details in noted if path == "g"] == [5, 0, 0]
    assert {details.op for path, details in noted if path == "g"} == {"Sum"}
    assert [details.num_bytes for path, details in noted if path == "c"] == [7, 0]
    assert [details.flops for path, details in noted if path == "s"] == [3, 0]


def test_an_annotation_that_goes_on_after_another_was_left_is_not_counted_twice():
    def use() -> None:
        one, two = annotate("one"), annotate("two", flops=4)
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        two.__exit__(None, None, None)

    assert [(path, details.flops if details else 0) for path, details in _noted(DetailsLog(), use)] == [
        ("one", 0),
        ("one/two", 4),
        ("one/two", 0),
    ]


class JournalLog(DetailsLog):
    """A source whose records are not in memory, and that is recorded for a part of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Details] = []
        self.facts: list[dict[str, int]] = []
        self.is_on = True

    def note_details(self, details: Details) -> None:
        self.noted.append(details)

    def note_facts(self, texts, numbers) -> None:
        self.facts.append(dict(numbers))

    def is_recorded(self) -> bool:
        return self.is_on


def test_details_of_a_recording_that_is_not_in_memory_are_limited(monkeypatch):
    """Details beyond the limit are counted; those that are known keep their number."""
    monkeypatch.setattr(known_details, "_MOST_PARTS", 100)
    monkeypatch.setattr(annotate_module, "_MOST_CHECKED", 10)
    source = JournalLog()
    send_annotations_to(source, is_bounded=True)
    recorder = annotate_module._recorder
    for flops in range(1, 501):
        with annotate("a", flops=flops):
            pass
    with annotate("a", flops=7):
        pass
    with annotate("b", stack=True):
        pass
    assert len(recorder._checked) <= 10
    ended = send_annotations_to(None)
    assert [details.flops for details in ended.details] == list(range(1, 101))
    assert source.noted == list(ended.details)
    assert [number for _, number in source.pushed] == [*range(1, 101), *[0] * 400, 7, 0]
    assert ended.counters["annotations_without_details"] == 401
    assert source.facts[0] == {"annotations_without_details": 1}  # and then once a second
    assert len(source.facts) < 100


def test_details_of_a_step_in_memory_are_all_kept(monkeypatch):
    monkeypatch.setattr(known_details, "_MOST_PARTS", 10)

    def use() -> None:
        for flops in range(1, 101):
            with annotate("a", flops=flops):
                pass

    assert [details.flops for _, details in _noted(DetailsLog(), use)] == list(range(1, 101))


def test_a_process_that_is_not_recorded_keeps_no_details(monkeypatch):
    source = JournalLog()
    source.is_on = False
    monkeypatch.setattr(annotate_module, "_standing", None)
    annotate_module.send_annotations_always(source)
    try:
        for is_on in (False, True, False):
            source.is_on = is_on
            for flops in range(1, 4):
                with annotate("a", flops=flops if is_on else flops + 10):
                    pass
        assert [details.flops for details in source.noted] == [1, 2, 3]
        assert [number for _, number in source.pushed] == [0, 0, 0, 1, 2, 3, 0, 0, 0]
        known = annotate_module._standing.known
        annotate_module.send_annotations_always(source, stacks=True)
        assert annotate_module._standing.known is known  # the recordings go on with its numbers
    finally:
        monkeypatch.undo()
        send_annotations_to(None)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"flops": -1}, ValueError, "flops=.* from 0"),
        ({"flops": "many"}, TypeError, "flops=.* a number, not str"),
        ({"flops": True}, TypeError, "flops=.* a number, not bool"),
        ({"flops": float("nan")}, ValueError, "flops=.* not nan"),
        ({"bytes": float("inf")}, ValueError, "bytes=.* not inf"),
        ({"bytes": 2**63}, ValueError, "bytes=.* from 0"),
        ({"op": ""}, ValueError, "op=.* is empty"),
        ({"op": 3}, TypeError, "op=.* takes text"),
        ({"inputs": "one"}, TypeError, "inputs=.*one"),
        ({"inputs": [1]}, TypeError, "inputs=.* not int"),
        ({"inputs": ["a", "/"]}, ValueError, "inputs=.* empty name"),
        ({"inputs": 1}, TypeError, "inputs=.* not int"),
        ({"stack": "yes"}, TypeError, "stack=.* takes True or False, not 'yes'"),
        ({"flop": 1}, TypeError, "annotate.* unexpected keyword argument 'flop'"),
    ],
)
def test_bad_details_are_refused_where_they_are_written(given, error, message):
    with pytest.raises(error, match=message) as caught:
        annotate("a", **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "name", "meant"),
    [
        ("net/b", "a", "net/a"),
        ("net/deep/b", "a", "net/a"),
        ("net/deep/b", "c", "c"),
        ("net/a", "a", "a"),
        ("b", "net/a", "net/a"),
        ("b", "unknown", "unknown"),
    ],
)
def test_an_input_is_the_nearest_annotation_of_its_name(path, name, meant):
    known = frozenset(["net", "net/a", "net/b", "net/deep", "net/deep/b", "a", "b", "c"])
    assert resolve(path, [name], known) == [meant]


@pytest.mark.parametrize("name", ["", "/", " ", 3, None])
def test_a_bad_name_is_refused_while_a_trace_is_open(log, name):
    with pytest.raises((ValueError, TypeError), match="an annotation"):
        annotate(name)


def test_all_ways_to_make_and_enter_an_annotation_agree_while_a_trace_is_open(log):
    class Named(annotate):
        __slots__ = ("more",)

    made = [annotate("a"), annotate(name="a"), Named("a"), Named(name="a"), annotate("0a")]
    made[2].more = "kept"
    again = annotate("before")
    again.__init__("a")
    for number, each in enumerate([*made, again]):
        with each as entered:
            assert entered is each
            log.launch(str(number))
        assert annotate.__enter__(each) is each
        log.launch(str(number))
        assert annotate.__exit__(each, None, None, None) is None
        assert each.__exit__(None, exc=None, traceback=None) is None
    paths = ["a", "a", "a", "a", "0a", "a"]
    assert log.launched == [(str(number), path) for number, path in enumerate(paths) for _ in range(2)]
    assert made[2].more == "kept"
    with pytest.raises(TypeError):
        annotate()
    with pytest.raises(TypeError):
        annotate("a", "b")
    with pytest.raises(TypeError, match="unknown"):
        annotate("a", unknown=1)


def test_an_annotation_that_something_refers_to_is_never_used_for_another_block(log):
    """An annotation that nothing refers to any more is made again, as that of the next block."""
    kept = [annotate(f"kept{number}") for number in range(3)]
    with annotate("outer") as outer, annotate("inner") as inner:
        pass
    last = annotate("last")
    assert len({id(each) for each in (*kept, outer, inner, last)}) == 6
    assert [each.name for each in (*kept, outer, inner, last)] == ["kept0", "kept1", "kept2", "outer", "inner", "last"]
    del last, inner
    with kept[1], annotate("a", flops=1.0), annotate("b"), outer:
        assert log.stack[-1] == "kept1/a/b/outer"
    assert log.stack == []
    with annotate("c"):  # after one with details and one that was entered
        assert log.stack == ["c"]


def test_an_annotation_that_nothing_refers_to_keeps_no_session():
    def session() -> weakref.ref[Log]:
        log = Log()
        send_annotations_to(log)
        with annotate("block"):
            pass
        send_annotations_to(None)
        return weakref.ref(log)

    ended = session()
    gc.collect()
    assert ended() is None


def test_an_annotation_without_a_name_is_no_crash(log):
    with pytest.raises(AttributeError), annotate.__new__(annotate):
        pass
    with pytest.raises((AttributeError, TypeError)):
        annotate.__enter__("text")


def test_an_interrupted_entry_is_left_again():
    class Interrupted(Log):
        def push_annotation(self, path):
            super().push_annotation(path)
            if path == "a":
                raise KeyboardInterrupt

    source = Interrupted()
    send_annotations_to(source)
    try:
        with pytest.raises(KeyboardInterrupt), annotate("a"):
            pass
        with annotate("b"):
            source.launch("kernel")
    finally:
        send_annotations_to(None)
    assert source.launched == [("kernel", "b")]
    assert source.stack == []


def test_the_declared_signature_is_shown():
    assert list(inspect.signature(collector.annotate).parameters) == ["name", "flops", "bytes", "op", "inputs", "stack"]
    assert list(inspect.signature(collector.annotate("op")).parameters) == ["function"]


@pytest.mark.simulator
@pytest.mark.parametrize("is_decorated", [False, True], ids=["block", "function"])
@pytest.mark.parametrize("details", [{}, {"flops": 8}], ids=["name alone", "details"])
def test_annotations_are_left_at_the_limit_of_recursion(is_decorated, details):
    def block(depth):
        with annotate("r", **details):
            if depth == 0:
                raise LookupError
            block(depth - 1)

    @annotate("r", **details)
    def function(depth):
        if depth == 0:
            raise LookupError
        function(depth - 1)

    descend = function if is_decorated else block

    def reaches_the_end(depth):
        with pytest.raises((LookupError, RecursionError)) as found:
            descend(depth)
        gpu.launch("after")
        return found.type is LookupError

    with SimulatedGpu() as gpu, collector.trace() as step:
        frames_at_depth = 2 if is_decorated else 1
        possible, impossible = 1, sys.getrecursionlimit() // frames_at_depth
        while impossible - possible > 1:
            depth = (possible + impossible) // 2
            possible, impossible = (depth, impossible) if reaches_the_end(depth) else (possible, depth)
        reached = [reaches_the_end(depth) for depth in range(possible - 10, possible + 10)]
        gpu.synchronize()
    assert set(reached) == {True, False}
    assert {kernel.annotation for kernel in step.recording.kernels} == {""}
    assert step.ledger.annotations_mixed == step.ledger.annotations_unfollowed == 0


@pytest.mark.simulator
@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
def test_a_long_name_is_cut_between_characters_and_counted(character):
    with SimulatedGpu() as gpu, collector.trace() as step:
        for size in (4096, 4097):
            with annotate(character * (size // len(character.encode())) + "x" * (size % len(character.encode()))):
                gpu.launch("kernel")
        with annotate("short"):
            gpu.launch("kernel")
    whole, cut, short = step.recording.annotations_of(step.recording.kernels)
    assert (len(whole.encode()), short) == (4096, "short")
    assert cut == character * (4093 // len(character.encode())) + "…"
    assert step.ledger.losses() == [
        "1 annotation, range or mark has a name, path or other text above 4,096 bytes, of which the beginning was kept"
    ]


@pytest.mark.simulator
def test_the_paths_of_a_deep_recursion_take_memory_of_its_depth():
    with SimulatedGpu() as gpu, collector.trace() as step, contextlib.ExitStack() as blocks:
        for _ in range(3000):
            blocks.enter_context(annotate("layer"))
        gpu.launch("kernel")
    names = [step.recording.strings[name] for name in step.recording.annotations.name_id.tolist()]
    assert len(names) == 3000
    assert [name for name in names if not name.endswith("…")] == ["/".join(["layer"] * (n + 1)) for n in range(682)]
    assert len(set(names)) == 683
    assert step.ledger.source_counters["names_cut"] == 3000 - 682
