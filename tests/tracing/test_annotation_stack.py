"""The native stack of annotations. Its calls may run any Python: garbage collection, signal handlers, other stacks."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from contextvars import copy_context

import pytest

from collector.runtime.extension import load_extension


class Calls:
    """A source that lists what a stack asks of it, and does something during one of these calls."""

    def __init__(self):
        self.made = []
        self.during = {}
        self.stack = load_extension().annotation_stack(
            lambda path: self._make(f"push {path}"), lambda: self._make("pop"), None, int, lambda frame: False, None
        )

    def _make(self, call):
        self.made.append(call)
        self.during.pop(call, int)()

    def place_inside(self, *names):
        """The place of annotations of these names, which this thread has no longer."""

        def enter():
            for name in names:
                self.stack.enter(object(), name, 0)
            return load_extension().annotation_place().get()

        place = copy_context().run(enter)
        self.stack.resume(None)
        self.made.clear()
        return place


def enter_many_stacks():
    others = [Calls() for _ in range(64)]

    def enter():
        for other in others:
            other.stack.enter(other, "other", 0)

    copy_context().run(enter)
    return others


@pytest.fixture
def others():
    """Stacks of other sessions that are entered during a call."""
    found = []
    yield lambda: found.extend(enter_many_stacks())
    assert len(found) == 64
    for other in found:
        other.stack.resume(None)
        assert other.made == ["push other", "pop"]


def test_other_stacks_are_entered_during_a_push(others):
    calls = Calls()
    place = calls.place_inside("a", "b")
    calls.during["push a"] = others
    calls.stack.resume(place)
    calls.stack.resume(None)
    assert calls.made == ["push a", "push a/b", "pop", "pop"]


def test_other_stacks_are_entered_during_a_pop(others):
    calls = Calls()
    first, second = calls.place_inside("a"), calls.place_inside("b")
    calls.stack.resume(first)
    calls.during["pop"] = others
    calls.stack.resume(second)
    calls.stack.resume(None)
    assert calls.made == ["push a", "pop", "push b", "pop"]


def test_the_annotation_around_is_left_during_a_pop():
    one, two = copy_context(), copy_context()
    calls = Calls()
    around, inside = object(), object()
    one.run(calls.stack.enter, around, "a", 0)
    two.run(calls.stack.enter, object(), "b", 0)
    calls.made.clear()
    calls.during["pop"] = lambda: calls.stack.leave(around)
    one.run(calls.stack.enter, inside, "c", 0)
    assert calls.made == ["pop", "push a", "push a/c"]
    calls.stack.resume(None)


def test_an_annotation_that_a_copy_of_its_context_leaves_stays_open_in_its_own():
    calls, inside = Calls(), object()
    context = copy_context()
    context.run(calls.stack.enter, object(), "a", 0)
    context.run(calls.stack.enter, inside, "b", 0)
    copy = context.run(copy_context)
    copy.run(calls.stack.leave, inside)
    copy.run(calls.stack.enter, object(), "in copy", 0)
    context.run(calls.stack.enter, object(), "in own", 0)
    calls.stack.resume(None)
    assert [call for call in calls.made if call != "pop"] == [
        "push a",
        "push a/b",
        "push a/in copy",
        "push a/b",
        "push a/b/in own",
    ]


def test_a_context_is_freed_after_its_annotations_are_left():
    calls, around, inside = Calls(), object(), object()
    context = copy_context()
    for owner in (around, inside):
        context.run(calls.stack.enter, owner, "name", 0)
    for owner in (inside, around):
        context.run(calls.stack.leave, owner)
    gone = weakref.ref(context)
    del context
    assert gone() is None
    context = copy_context()
    context.run(calls.stack.enter, around, "name", 0)  # nobody leaves it
    gone = weakref.ref(context)
    del context
    calls.stack.resume(None)
    assert gone() is None


@pytest.mark.slow
def test_what_a_call_uses_is_not_freed_by_it():
    """With an allocator that overwrites memory when it is freed."""
    tests = [f"{__file__}::{test.__name__}" for test in (test_the_annotation_around_is_left_during_a_pop,)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONMALLOC": "debug"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


WITHOUT_MEMORY = """
import resource
from collector.runtime.extension import load_extension

stack = load_extension().annotation_stack(lambda *_: None, lambda *_: None, None, int, lambda frame: False, None)
name = "a" * 4000  # of each of the nested ones the path is kept up to 4,096 bytes
pages = int(open("/proc/self/statm").read().split()[0])
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), limits[1]))
try:
    for _ in range(1 << 20):
        stack.enter(stack, name, 0)
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, limits)
    print("no memory")
"""


@pytest.mark.medium
@pytest.mark.skipif("COLLECTOR_SANITIZED" in os.environ, reason="a sanitizer maps more than any limit")
def test_a_path_for_which_there_is_no_memory_is_an_error():
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "no memory\n"), done.stderr
