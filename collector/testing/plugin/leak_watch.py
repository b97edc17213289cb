"""The leak check of the test that is running: which of the memory and which of the recordings belong to the test."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from collector.runtime.garbage import no_garbage_collection
from collector.testing.plugin.leaks import LeakCheck, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from collector.recording.recording import Recording
    from collector.testing.plugin.background_tracing import Tracing
    from collector.testing.plugin.running_test import Running


class LeakWatch:
    """Checks one test after the other for leaks; a pytest plugin, which sees the fixtures of wider scopes."""

    def __init__(self, tracing: Tracing) -> None:
        """Check tests whose GPU work ``tracing`` records."""
        self._tracing = tracing
        self._known_memory: Memory | None = None
        self._checked: Running | None = None
        """The test that is checked now."""
        self._no_garbage = ExitStack()
        """Ends when tracing of the next phase of the checked test begins."""

    def begin(self, running: Running) -> None:
        """Look for leaks of the test from here to the end of its own fixtures' teardown."""
        self._tracing.finish()  # the check's own driver calls do not belong to the test
        running.leak_check = LeakCheck(self._known_memory)
        self._checked = running

    def begin_phase(self) -> None:
        """The tracing of a phase has begun, so that garbage which is collected from here on is seen."""
        self._no_garbage.close()

    def end_phase(self, running: Running) -> None:
        """The tracing of a phase of the test is about to end."""
        if running is self._checked:
            # Garbage collection between two traces could free device memory unnoticed.
            self._no_garbage.enter_context(no_garbage_collection())

    def take(self, running: Running, recordings: list[Recording]) -> None:
        """Take the recordings of the phase that has ended."""
        if running is self._checked:
            running.take_parts(recordings, own=True)
            running.taken = 0

    def gpu_closes(self) -> None:
        """End the check of a test whose call or method has ended: the memory disappears with the simulated GPU."""
        running = self._checked
        if running is not None and ("call" in running.phases or running.method is not None):
            self.finish(running)

    def finish_before_wider_teardown(self, running: Running) -> None:
        """End the check after the test's own fixtures are torn down, before those of wider scopes."""
        item, teardown = running.item, running.item.teardown

        def teardown_and_finish() -> None:
            try:
                teardown()
            finally:
                del item.teardown
                self.finish(running)

        item.teardown = teardown_and_finish  # type: ignore[method-assign]

    def finish(self, running: Running) -> None:
        """End the check of the test, if it has not ended yet."""
        check = running.leak_check
        if check is not None and self._checked is running:
            self._part(running, check.finish, own=True)
            self._checked = None
            self._known_memory = check.known

    def end_test(self) -> None:
        """Forget the test, and let garbage be collected."""
        self._checked = None
        self._no_garbage.close()

    def _part(self, running: Running, measure: Callable[[], None], *, own: bool) -> None:
        """End a part of the test whose allocations are its ``own`` or not. Memory that ``measure`` frees counts too."""
        with no_garbage_collection():
            running.take_parts(self._tracing.recorded(), own=own)
            with self._tracing.apart() as collected:
                measure()
        running.parts += [(recording, False) for recording in collected]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Exclude the memory of a wider fixture from the leak check of the test that uses it first."""
        running = self._checked
        if running is None or running.in_wider_fixture or fixturedef.scope == "function":
            return (yield)
        check = running.leak_check
        assert check is not None
        self._part(running, check.leave, own=True)
        running.in_wider_fixture = True
        try:
            return (yield)
        finally:
            running.in_wider_fixture = False
            self._part(running, check.come_back, own=False)

    @pytest.hookimpl(trylast=True)
    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """A fixture of a wider scope may be torn down in a test's setup, to be set up with another parameter."""
        running = self._checked
        if running is None or running.in_wider_fixture or fixturedef.scope == "function":
            return
        check = running.leak_check
        assert check is not None
        self._part(running, check.forget_release, own=True)
