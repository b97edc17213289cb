"""Names follow tasks, functions in copied contexts and generators, and reach nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import launch_log
import pytest
from launch_log import Log

from collector.tracing.annotate import annotate, send_annotations_to


class ForeignLoop(asyncio.AbstractEventLoop):
    """A loop that runs its callbacks itself, as uvloop does: it uses no class of asyncio but futures and tasks."""

    def __init__(self) -> None:
        self._ready: list = []
        self._is_stopped = False

    def call_soon(self, callback, *args, context=None):
        handle = asyncio.Handle(callback, args, self)
        self._ready.append((context or contextvars.copy_context(), callback, args))
        return handle

    call_soon_threadsafe = call_soon

    def create_future(self):
        return asyncio.Future(loop=self)

    def create_task(self, coroutine, **options):
        return asyncio.Task(coroutine, loop=self, **options)

    def get_debug(self):
        return False

    def stop(self):
        self._is_stopped = True

    def run_forever(self):
        asyncio._set_running_loop(self)
        try:
            while not self._is_stopped:
                ready, self._ready = self._ready, []
                for context, callback, args in ready:
                    context.run(callback, *args)
        finally:
            asyncio._set_running_loop(None)

    def run_until_complete(self, coroutine):
        task = self.create_task(coroutine)
        task.add_done_callback(lambda _: self.stop())
        self.run_forever()
        return task.result()


def new_loops() -> list:
    """Loops that are not asyncio's."""
    with contextlib.suppress(ImportError):
        import uvloop

        return [ForeignLoop, uvloop.new_event_loop]
    return [ForeignLoop]


class Launches(Log):
    """The same, called for each launch."""

    __call__ = Log.launch


@pytest.fixture
def launch():
    launches = Launches()
    send_annotations_to(launches)
    yield launches
    send_annotations_to(None)
    assert launches.stack == []


def counts() -> dict[str, int]:
    return {name: count for name, count in send_annotations_to(None).counters.items() if count}


def test_launches_of_a_resumed_task_have_its_own_name(launch):
    async def task(name: str) -> None:
        with annotate(name):
            launch(f"{name} before")
            await asyncio.sleep(0)
            launch(f"{name} after")
            with annotate("inner"):
                await asyncio.sleep(0)
                launch(f"{name} inside")
        await asyncio.sleep(0)
        launch(f"{name} at the end")

    async def main() -> None:
        await asyncio.gather(*(task(name) for name in "abc"))
        launch("main")

    asyncio.run(main())
    expected = {("main", "")}
    for name in "abc":
        expected |= {(f"{name} before", name), (f"{name} after", name), (f"{name} at the end", "")}
        expected.add((f"{name} inside", f"{name}/inner"))
    assert set(launch.launched) == expected
    assert counts() == {}


def test_a_task_and_what_begins_inside_its_annotation_have_the_name(launch):
    async def child() -> None:
        launch("child begins")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with annotate("own"):
            launch("child inside")

    async def main() -> None:
        with annotate("step"):
            task = asyncio.create_task(child())
            await asyncio.sleep(0)
        launch("main")
        await task

    with annotate("train"):
        asyncio.run(main())
        launch("after the loop")
    assert launch.launched == [
        ("child begins", "train/step"),
        ("main", "train"),
        ("child inside", "train/step/own"),
        ("after the loop", "train"),
    ]
    assert counts() == {}


def test_tasks_that_began_before_the_trace_are_followed():
    launch = Launches()

    async def other() -> None:
        for turn in range(3):
            launch(f"other {turn}")
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        send_annotations_to(launch)
        with annotate("main"):
            await asyncio.sleep(0)
            launch("resumed")
            await asyncio.sleep(0)
        await task
        assert counts() == {}

    asyncio.run(main())
    assert set(launch.launched) == {("other 0", ""), ("other 1", ""), ("other 2", ""), ("resumed", "main")}


def test_a_callback_has_the_name_of_the_code_that_asked_for_it(launch):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with annotate("asked"):
            loop.call_soon(launch, "callback")
        with annotate("waits"):
            await asyncio.sleep(0)
            launch("main")

    asyncio.run(main())
    assert launch.launched == [("callback", "asked"), ("main", "waits")]


def test_the_first_step_of_an_eager_task_leaves_no_name_behind(launch):
    class Eager(asyncio.Task):
        """Runs its first step where it is made, as eager tasks of CPython 3.12 do."""

        def __init__(self, coro, *, loop, **options):
            self.context = contextvars.copy_context()
            self.context.run(coro.send, None)
            options.pop("context", None)
            super().__init__(coro, loop=loop, **options)

    async def child() -> None:
        with annotate("child"):
            launch("child")
            await asyncio.sleep(0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: Eager(coro, loop=loop, **options))
        with annotate("main"):
            task = asyncio.ensure_future(child())
            launch("main")
        loop.set_task_factory(None)
        with contextlib.suppress(Exception):
            await task

    asyncio.run(main())
    assert launch.launched[:2] == [("child", "main/child"), ("main", "main")]


@pytest.mark.parametrize("how", ["to_thread", "copied context", "partial"])
def test_a_function_in_a_copied_context_of_a_thread_has_the_name(launch, how):
    async def in_a_thread() -> None:
        with annotate("step"):
            await asyncio.to_thread(launch, "in a thread")
        await asyncio.to_thread(launch, "later")

    if how == "to_thread":
        asyncio.run(in_a_thread())
    else:
        with ThreadPoolExecutor(1) as pool:
            with annotate("step"):
                context = contextvars.copy_context()
            if how == "partial":
                asyncio.run(in_a_thread())
            else:
                pool.submit(context.run, launch, "in a thread").result(600)
                pool.submit(launch, "later").result(600)
    assert launch.launched == [("in a thread", "step"), ("later", "")]
    assert counts() == {}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython 3.14 reports the contexts that every thread enters")
def test_an_annotation_in_a_context_that_a_thread_entered_unseen_is_counted(launch):
    def run() -> None:
        launch("before")
        with annotate("inner"):
            launch("inside")
        launch("after")

    with annotate("step"):
        context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,))
    thread.start()
    thread.join()
    assert launch.launched[:2] == [("before", ""), ("inside", "step/inner")]
    assert counts() == {"annotations_unfollowed": 1}


def test_a_generator_that_waits_inside_names_nobody_and_is_counted(launch):
    def batches():
        with annotate("waits"):
            launch("generator")
            yield 1
            with annotate("inner"):
                launch("inner")

    generator = batches()
    with annotate("step"):
        next(generator)
        launch("stranger")
    launch("after")
    list(generator)
    launch("end")
    assert launch.launched == [
        ("generator", "step"),
        ("stranger", "step"),
        ("after", ""),
        ("inner", "inner"),
        ("end", ""),
    ]
    assert counts() == {"annotations_suspended": 1}


def test_two_generators_that_take_turns_inside_disturb_nothing(launch):
    def waits(name: str):
        with annotate(name):
            yield

    one, two = waits("one"), waits("two")
    next(one)
    next(two)
    with annotate("step"):
        one.close()
        launch("inside")
    two.close()
    launch("after")
    assert launch.launched == [("inside", "step"), ("after", "")]
    assert counts() == {"annotations_suspended": 2}


def test_a_generator_whose_block_ends_before_the_yield_has_its_name(launch):
    def batches():
        for number in range(2):
            with annotate("load"):
                launch(f"load {number}")
            yield number

    for number in batches():
        launch(f"step {number}")
    assert launch.launched == [("load 0", "load"), ("step 0", ""), ("load 1", "load"), ("step 1", "")]
    assert counts() == {}


def test_an_asynchronous_generator_may_await_inside_but_not_yield(launch):
    async def awaits():
        with annotate("awaits"):
            await asyncio.sleep(0)
            launch("awaits")
        yield

    async def yields():
        with annotate("yields"):
            await asyncio.sleep(0)
            launch("yields")
            yield

    async def main() -> None:
        async for _ in awaits():
            launch("main")
        async for _ in yields():
            launch("main")

    asyncio.run(main())
    assert launch.launched == [("awaits", "awaits"), ("main", ""), ("yields", ""), ("main", "")]
    assert counts() == {"annotations_suspended": 1}


def test_a_context_manager_made_of_a_generator_names_its_block(launch):
    @contextlib.contextmanager
    def layer(name: str):
        with annotate(name):
            yield

    @contextlib.asynccontextmanager
    async def stage(name: str):
        with annotate(name):
            yield

    async def main() -> None:
        async with stage("stage"):
            await asyncio.sleep(0)
            launch("inside")

    with layer("layer"):
        launch("inside")
    asyncio.run(main())
    launch("after")
    assert launch.launched == [("inside", "layer"), ("inside", "stage"), ("after", "")]
    assert counts() == {}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="nothing is replaced where the interpreter reports contexts")
def test_the_methods_of_others_are_as_before_when_the_trace_has_ended():
    before = asyncio.Handle._run, ThreadPoolExecutor.submit, asyncio.BaseEventLoop.create_task
    send_annotations_to(Launches())
    assert asyncio.Handle._run is not before[0]
    send_annotations_to(Launches())
    send_annotations_to(None)
    assert (asyncio.Handle._run, ThreadPoolExecutor.submit, asyncio.BaseEventLoop.create_task) == before


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="nothing is replaced where the interpreter reports contexts")
def test_a_tool_that_wraps_our_method_keeps_its_own(monkeypatch):
    monkeypatch.setattr(ThreadPoolExecutor, "submit", ThreadPoolExecutor.submit)
    send_annotations_to(Launches())
    ours = ThreadPoolExecutor.submit

    def theirs(self, *args, **kwargs):
        return ours(self, *args, **kwargs)

    ThreadPoolExecutor.submit = theirs
    send_annotations_to(None)
    assert ThreadPoolExecutor.submit is theirs
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(contextvars.copy_context().run, int).result(600) == 0


def test_threads_that_end_inside_an_annotation_disturb_nothing(launch):
    def work() -> None:
        annotate("never left").__enter__()
        launch("inside")

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        with annotate("after"):
            launch("after")
    assert launch.launched == [("inside", "never left"), ("after", "after")] * 3
    assert counts() == {}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the interpreter reports switches of context")
def test_methods_below_those_of_another_tool_are_not_replaced_again():
    before, depths = asyncio.Handle._run, []

    def depth_of_run() -> int:
        frame, depth = sys._getframe(), 0
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        return depth

    async def measure() -> None:
        depths.append(depth_of_run())

    send_annotations_to(Launches())
    ours = asyncio.Handle._run
    asyncio.Handle._run = lambda self: ours(self)
    try:
        for _ in range(5):
            send_annotations_to(None)
            send_annotations_to(Launches())
            asyncio.run(measure())
    finally:
        asyncio.Handle._run = ours
        send_annotations_to(None)
    assert len(set(depths)) == 1
    assert asyncio.Handle._run is before


@pytest.mark.parametrize("new_loop", new_loops())
def test_another_loop_than_that_of_asyncio_is_followed(launch, new_loop):
    async def task(name: str) -> None:
        with annotate(name):
            launch(f"{name} before")
            await asyncio.sleep(0)
            launch(f"{name} after")

    async def stranger() -> None:
        for turn in range(3):
            launch(f"stranger {turn}")
            await asyncio.sleep(0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with annotate("asked"):
            loop.call_soon(launch, "callback")
        await asyncio.gather(task("a"), stranger(), task("b"))
        launch("main")

    with annotate("train"):
        new_loop().run_until_complete(main())
        launch("after the loop")
    expected = {("callback", "train/asked"), ("main", "train"), ("after the loop", "train")}
    expected |= {(f"stranger {turn}", "train") for turn in range(3)}
    expected |= {(f"{name} {when}", f"train/{name}") for name in "ab" for when in ("before", "after")}
    assert set(launch.launched) == expected
    assert counts() == {}


def test_a_loop_that_is_defined_while_a_session_is_open_is_followed(launch):
    class Later(ForeignLoop):
        def call_soon(self, callback, *args, context=None):
            return super().call_soon(callback, *args, context=context)

    async def stranger() -> None:
        launch("stranger")

    async def main() -> None:
        other = asyncio.get_running_loop().create_task(stranger())
        with annotate("main"):
            await asyncio.sleep(0)
            launch("inside")
        await other

    Later().run_until_complete(main())
    assert launch.launched == [("stranger", ""), ("inside", "main")]
    assert counts() == {}


def test_the_methods_of_other_loops_are_as_before_after_the_session():
    before = dict(vars(ForeignLoop)), dict(vars(asyncio.AbstractEventLoop))
    send_annotations_to(Launches())
    send_annotations_to(None)
    assert (dict(vars(ForeignLoop)), dict(vars(asyncio.AbstractEventLoop))) == before


POOLED = """
import asyncio, sys
from launch_log import Log
from collector.tracing.annotate import annotate, send_annotations_always, send_annotations_to

async def main():
    with annotate("outer"):
        await asyncio.to_thread(log.launch, "pooled")

log = Log()
{begin}(log)
asyncio.run(main())
print(log.launched)
"""


@pytest.mark.medium
@pytest.mark.parametrize("begin", ["send_annotations_to", "send_annotations_always"])
def test_a_thread_of_a_pool_that_is_imported_later_gets_the_names_of_its_context(begin: str) -> None:
    """Recorders, and processes that others record, get annotations from the import of the collector on."""
    done = subprocess.run(
        [sys.executable, "-c", POOLED.format(begin=begin)],
        cwd=Path(launch_log.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[('pooled', 'outer')]\n"), done.stderr
