"""Events of running lines, from Python 3.12 on: by `sys.monitoring`, which costs nothing for a line without a call.

The events of a line are switched off if it cannot call anything (loads, stores, jumps, the next number of a ``range``),
and after `MOST_RUNS` runs in any case, so that a loop of millions costs as much as one of thousands.
`Function.is_certain` reports whether a line that was switched off may have run since the last recorded line.
"""

from __future__ import annotations

import dis
import sys
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

MOST_RUNS = 3_000
"""The maximum number of recorded runs of one line, and of the end of one function."""

_SILENT = frozenset(
    {
        *("CACHE", "COPY", "COPY_FREE_VARS", "END_FOR", "EXTENDED_ARG", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"),
        *("JUMP_FORWARD", "LOAD_CLOSURE", "MAKE_CELL", "MAKE_FUNCTION", "NOP", "NOT_TAKEN", "POP_ITER", "POP_TOP"),
        *("PUSH_NULL", "RESUME", "RETURN_CONST", "RETURN_VALUE", "SET_FUNCTION_ATTRIBUTE", "SWAP"),
        *("BUILD_LIST", "BUILD_TUPLE"),
    }
)
_SILENT_BEGINNINGS = ("LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_SMALL_INT", "STORE_FAST")
"""Instructions that call nothing. Operators are not among them: ``a + b`` of tensors launches a kernel."""


class Function:
    """The lines and loops of one code object of the project's own code."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.runs: dict[int, int] = {}
        """Line -> number of recorded runs."""
        self.ends = 0
        """The number of times that it returned or yielded."""
        self.off_since: dict[int, int] = {}
        """Line -> time in ns at which it was switched off although it may make calls."""
        self.off = False
        """Whether the whole function is switched off, because it ran too often."""

    def is_certain(self, line: int, at_ns: int) -> bool:
        """Whether no other line that was switched off can have run between ``line`` and ``at_ns``."""
        hidden = {other for other, since in self.off_since.items() if other != line and since <= at_ns}
        return not any(line in loop and not hidden.isdisjoint(loop) for loop in self._loops)

    @cached_property
    def silent(self) -> frozenset[int]:
        """Offsets after which no instruction of the same line calls anything."""
        silent: set[int] = set()
        following, quiet = None, True
        for index in range(len(self._instructions) - 1, -1, -1):
            offset = self._instructions[index].offset
            line = self._lines[offset // 2]
            quiet = (quiet or line != following) and self._is_silent(index)
            following = line
            if quiet:
                silent.add(offset)
        return frozenset(silent)

    @cached_property
    def _instructions(self) -> list[dis.Instruction]:
        return list(dis.get_instructions(self.code))

    @cached_property
    def _lines(self) -> list[int | None]:
        """The line of each two bytes of code."""
        return [line for start, end, line in self.code.co_lines() for _ in range(start, end, 2)]

    @cached_property
    def _loops(self) -> list[frozenset[int | None]]:
        """The lines of each loop."""
        return [
            frozenset(self._lines[each.argval // 2 : each.offset // 2 + 1])
            for each in self._instructions
            if each.opname.startswith("JUMP_BACKWARD")
        ]

    def _is_silent(self, index: int) -> bool:
        name = self._instructions[index].opname
        if name == "FOR_ITER":
            return self._counts(index)
        return name in _SILENT or name.startswith(_SILENT_BEGINNINGS)

    def _counts(self, index: int) -> bool:
        """Whether the loop whose FOR_ITER is at ``index`` iterates over ``range(...)``."""
        line = self._lines[self._instructions[index].offset // 2]
        head = [each for each in self._instructions[:index] if self._lines[each.offset // 2] == line]
        if [each.opname for each in head[-2:]] != ["CALL", "GET_ITER"]:
            return False
        loads = [each for each in head if each.opname.startswith("LOAD_")]
        return bool(loads) and loads[0].opname == "LOAD_GLOBAL" and loads[0].argval == "range"


if sys.version_info >= (3, 12):
    _EVENTS = sys.monitoring.events
    _IN_FUNCTIONS = _EVENTS.LINE | _EVENTS.PY_RETURN | _EVENTS.PY_YIELD | _EVENTS.PY_RESUME
    _TOOL_IDS = (3, 4, sys.monitoring.OPTIMIZER_ID)
    """The ids that the documentation assigns to nobody, or to optimizers; debuggers and coverage tools have others."""

    class LineEvents:
        """Reports every line that may make calls, between `start` and `stop`, in all threads."""

        def __init__(
            self,
            is_ours: Callable[[CodeType], bool],
            note: Callable[[Function, int], None],
            now_ns: Callable[[], int],
        ) -> None:
            """Follow the functions that ``is_ours`` accepts; ``note`` is called with each line that runs."""
            self._is_ours = is_ours
            self._note = note
            self._now_ns = now_ns
            self._functions: dict[int, Function] = {}
            """By the address of the code object, which each function keeps alive; code objects are slow to hash."""
            self._tool: int | None = None

        def start(self) -> bool:
            """Begin; return whether a tool id was free."""
            tool = next((number for number in _TOOL_IDS if sys.monitoring.get_tool(number) is None), None)
            if tool is None:
                return False
            self._tool = tool
            sys.monitoring.use_tool_id(tool, "cupti-collector")
            register = sys.monitoring.register_callback
            register(tool, _EVENTS.PY_START, self._on_start)
            register(tool, _EVENTS.PY_RESUME, self._on_resume)
            register(tool, _EVENTS.LINE, self._on_line)
            register(tool, _EVENTS.PY_RETURN, self._on_end)
            register(tool, _EVENTS.PY_YIELD, self._on_end)
            sys.monitoring.restart_events()  # re-enables events that an earlier user of the id disabled
            sys.monitoring.set_events(tool, _EVENTS.PY_START | _EVENTS.PY_RESUME)
            return True

        def stop(self) -> None:
            """End, and remove all traces of the monitoring."""
            tool, self._tool = self._tool, None
            if tool is None:
                return
            sys.monitoring.set_events(tool, 0)
            for function in self._functions.values():
                sys.monitoring.set_local_events(tool, function.code, 0)
            for event in (_EVENTS.PY_START, _EVENTS.PY_RESUME, _EVENTS.LINE, _EVENTS.PY_RETURN, _EVENTS.PY_YIELD):
                sys.monitoring.register_callback(tool, event, None)
            sys.monitoring.free_tool_id(tool)

        def _follow(self, code: CodeType, frame: FrameType) -> Function | None:
            """The function, which is followed from now on; None if it is not the project's."""
            function = self._functions.get(id(code))
            if function is None and self._tool is not None and self._is_ours(code):
                function = self._functions[id(code)] = Function(code)
                if "range" in frame.f_globals:  # not the builtin
                    function.silent = frozenset()
                sys.monitoring.set_local_events(self._tool, code, _IN_FUNCTIONS)
            return function

        def _on_start(self, code: CodeType, offset: int) -> object:
            self._follow(code, sys._getframe(1))
            return sys.monitoring.DISABLE

        def _on_resume(self, code: CodeType, offset: int) -> object:
            frame = sys._getframe(1)
            function = self._follow(code, frame)
            if function is None or function.off:
                return sys.monitoring.DISABLE
            self._note(function, frame.f_lineno)
            return None

        def _on_line(self, code: CodeType, line: int) -> object:
            function = self._functions.get(id(code))
            if function is None or function.off or sys._getframe(1).f_lasti in function.silent:
                return sys.monitoring.DISABLE
            runs = function.runs.get(line, 0)
            if runs >= MOST_RUNS:
                function.off_since.setdefault(line, self._now_ns())
                return sys.monitoring.DISABLE
            function.runs[line] = runs + 1
            self._note(function, line)
            return None

        def _on_end(self, code: CodeType, offset: int, value: object) -> object:
            function = self._functions.get(id(code))
            if function is None:
                return sys.monitoring.DISABLE
            # Calls that the caller's line makes after this return belong to the caller's line.
            caller = sys._getframe(1).f_back
            while caller is not None and id(caller.f_code) not in self._functions:
                caller = caller.f_back
            if caller is not None:
                self._note(self._functions[id(caller.f_code)], caller.f_lineno)
            function.ends += 1
            function.off = function.ends >= MOST_RUNS
            return sys.monitoring.DISABLE if function.off else None
