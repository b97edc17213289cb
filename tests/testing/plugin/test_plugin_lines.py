"""The project's line of code that made a call: by `sys.monitoring`, or by a trace function if requested."""

import sys
import threading
from types import SimpleNamespace

import pytest

from collector.errors import CollectorError
from collector.testing.plugin import line_events
from collector.testing.plugin.lines import ANOTHER_TOOL, ELSEWHERE, NO_TOOL_ID, NOT_ASKED, OTHER_CLOCK, Lines

FILE = "tests/testing/plugin/test_plugin_lines.py"
MONITORED = sys.version_info >= (3, 12)
monitored = pytest.mark.skipif(not MONITORED, reason="sys.monitoring is new in Python 3.12")
before_monitoring = pytest.mark.skipif(MONITORED, reason="from Python 3.12 on there is sys.monitoring")
not_beside_a_tool = pytest.mark.skipif(
    not MONITORED and sys.gettrace() is not None, reason="beside a coverage tool no lines are noted"
)


class Program:
    """Its time is how often it did something; `line` says which line of a function did it, counted from its ``def``."""

    def __init__(self, root, build):
        self.log = []
        self.lines = Lines(root, self.log.__len__, asked=True)
        self.clock = build.recording().clock

    def line(self, at, function, thread=None):
        found = self.lines.at(thread or threading.get_native_id(), at, self.clock)
        if found is None:
            return None
        assert found[0] == FILE
        return found[1] - function.__code__.co_firstlineno


@pytest.fixture
def program(root, build):
    return Program(root, build)


@not_beside_a_tool
def test_a_call_was_made_by_the_line_that_the_thread_had_come_to(program):
    log = program.log

    def deeper():
        log.append("0")

    def calls():
        deeper()
        log.append("1")
        deeper(), log.append("3")
        return log.append("4")

    before = sys.gettrace()
    with program.lines:
        calls()
    assert [program.line(at, calls if at in (1, 3, 4) else deeper) for at in range(5)] == [1, 2, 1, 3, 4]
    assert program.line(-1, calls) is None
    assert program.line(0, calls, thread=threading.get_native_id() + 1) is None
    assert sys.gettrace() is before


@not_beside_a_tool
def test_operators_and_loops_may_launch_as_well(program):
    log = program.log

    def calls():
        kept = log
        kept += ["0"]
        kept[:0] = ["1"]
        for _ in map(log.append, "23"):
            pass
        del kept
        log.append("4")

    with program.lines:
        calls()
    assert [program.line(at, calls) for at in range(5)] == [2, 3, 4, 4, 7]


@not_beside_a_tool
def test_a_generator_and_its_caller_have_their_own_lines(program):
    log = program.log

    def produces():
        log.append("0")
        yield
        log.append("2")

    def consumes():
        items = produces()
        log.append(next(items))
        next(items, None)

    with program.lines:
        consumes()
    assert [program.line(at, function) for at, function in enumerate((produces, consumes, produces))] == [1, 2, 3]


@monitored
def test_threads_that_were_there_before_are_followed(program):
    go, works = threading.Event(), []

    def waits():
        go.wait()
        launches()

    def launches():
        works.append(threading.get_native_id())
        program.log.append("0")

    thread = threading.Thread(target=waits)
    thread.start()
    with program.lines:
        go.set()
        thread.join()
    assert program.line(0, launches, thread=works[0]) == 2


@pytest.fixture
def interruptions(monkeypatch):
    """One for each time that a line which ran interrupted the program."""
    counted = []

    def frame(depth):
        counted.append(depth)
        return sys._getframe(depth + 1)

    fake = SimpleNamespace(monitoring=sys.monitoring, _getframe=frame)
    monkeypatch.setattr(line_events, "sys", fake)
    return counted


RUNS = 10 * line_events.MOST_RUNS


@monitored
def test_a_loop_interrupts_no_more_the_longer_it_is(program, interruptions):
    log = program.log

    def plain():
        total = 0
        for i in range(RUNS):
            kept = i
        return total, kept

    def calculates():
        total = 0
        for i in range(RUNS):
            total += i * i
        return total

    def adds(a, b):
        return a + b

    def calls():
        total = 0
        for i in range(RUNS):
            total = adds(total, i)
        log.append("0")

    most = {plain: 10, calculates: line_events.MOST_RUNS + 10, calls: 3 * line_events.MOST_RUNS + 20}
    for function, count in most.items():
        interruptions.clear()
        with program.lines:
            function()
        assert 0 < len(interruptions) <= count, function
    # What comes after a loop is known, however often the loop ran.
    assert program.line(0, calls) == 4


@monitored
def test_a_line_is_not_known_where_another_of_the_loop_may_have_come_after_it(program):
    log = program.log

    def launches():
        for _ in range(RUNS):
            log.append("first")
            log.append("second")
        log.append("after")

    def launches_alone():
        for _ in range(RUNS):
            log.append("only")

    with program.lines:
        launches()
    assert [program.line(at, launches) for at in (0, 1, 2, 3)] == [2, 3, 2, 3]
    assert [program.line(at, launches) for at in (2 * RUNS - 2, 2 * RUNS - 1, 2 * RUNS)] == [None, None, 4]
    with program.lines:
        launches_alone()
    assert program.line(3 * RUNS, launches_alone) == 2
    assert program.lines.why_unknown(program.clock) == ELSEWHERE


@monitored
def test_what_a_function_does_that_ran_too_often_is_its_callers(program):
    log = program.log

    def launches():
        log.append("it")

    def calls():
        for _ in range(line_events.MOST_RUNS):
            launches()
        launches()

    with program.lines:
        calls()
    assert program.line(0, launches) == 1
    assert program.line(len(log) - 1, calls) == 3


@monitored
def test_nothing_stays_behind_and_other_tools_are_left_alone(program):
    def calls():
        program.log.append("0")

    def tools():
        return [sys.monitoring.get_tool(number) for number in range(6)]

    before = tools()
    with program.lines:
        during = tools()
        calls()
    assert during.count("cupti-collector") == before.count("cupti-collector") + 1
    assert tools() == before
    free = [number for number in (3, 4, 5) if before[number] is None]
    for number in free:
        sys.monitoring.use_tool_id(number, "somebody's")
        assert sys.monitoring.get_local_events(number, calls.__code__) == 0
    try:
        with Lines(program.lines._root.rstrip("/")) as lines:
            assert lines.why_unknown(program.clock) == NO_TOOL_ID
    finally:
        for number in free:
            sys.monitoring.free_tool_id(number)


@before_monitoring
def test_lines_are_off_unless_asked_for(root, build):
    before = sys.gettrace()
    with Lines(root) as lines:
        assert sys.gettrace() is before
    assert lines.why_unknown(build.recording().clock) == NOT_ASKED


@before_monitoring
def test_lines_are_not_noted_while_another_tool_traces(root, build):
    def other(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        with Lines(root, asked=True) as lines:
            during = sys.gettrace()
    finally:
        sys.settrace(before)
    assert during is other
    assert lines.why_unknown(build.recording().clock) == ANOTHER_TOOL


def test_after_the_most_lines_nothing_is_known(program, monkeypatch):
    from collector.testing.plugin import lines as lines_module

    if not MONITORED and sys.gettrace() is not None:
        pytest.skip("beside a coverage tool no lines are noted")
    monkeypatch.setattr(lines_module, "MAX_LINES", 2)
    log = program.log

    def calls():
        log.append("0")
        log.append("1")
        log.append("2")

    with Lines(program.lines._root.rstrip("/"), log.__len__, asked=True) as lines:
        calls()
    here = threading.get_native_id()
    assert [lines.at(here, at, program.clock) is not None for at in range(4)] == [True, True, True, False]


@not_beside_a_tool
def test_a_clock_that_goes_away_does_not_disturb_the_program(root, build):
    log = [5]

    def now_ns():
        if not log:
            raise CollectorError("the SimulatedGpu is not open")
        return log[-1]

    def calls():
        log.append(7)
        log.clear()
        return sorted([2, 1])

    with Lines(root, now_ns, asked=True) as lines:
        assert calls() == [1, 2]
    found = lines.at(threading.get_native_id(), 6, build.recording().clock)
    assert found == (FILE, calls.__code__.co_firstlineno + 1)


def test_lines_mean_nothing_for_a_clock_that_does_not_share_our_time(root, build):
    lines = Lines(root)
    assert lines.knows(build.recording().clock)
    build.clock["wall_stop_ns"] += 500_000
    assert not lines.knows(build.recording().clock)
    assert lines.why_unknown(build.recording().clock) == OTHER_CLOCK
    assert Lines(root, int).knows(build.recording().clock)
