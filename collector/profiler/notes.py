"""What a recording cannot know of its ops: their types, flops, inputs, and the lines of code they come from.

>>> notes = Notes(stacks=True)
>>> with notes.annotate("layer1/conv", op="Conv2D", flops=2_000_000, inputs=["layer1/input"]):
...     pass
>>> notes.op_log().log_entries[0].float_ops
2000000
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType

from collector.annotate import annotate
from collector.protos import GraphDef, OpLogProto


@dataclass
class _Note:
    op: str
    flops: int = 0
    num_bytes: int = 0
    types: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    stack: list[tuple[str, int, str, int]] = field(default_factory=list)


class Notes:
    """Annotates ops and remembers what was said of them, for the graph and the op log of a profile.

    Args:
        stacks: remember the Python stack of each op, for the code view.
    """

    def __init__(self, *, stacks: bool = False) -> None:
        self._stacks = stacks
        self._notes: dict[str, _Note] = {}
        self._threads = threading.local()

    @contextlib.contextmanager
    def annotate(
        self,
        name: str,
        *,
        op: str = "",
        flops: int = 0,
        num_bytes: int = 0,
        types: Sequence[str] = (),
        inputs: Sequence[str] = (),
    ) -> Iterator[None]:
        """`collector.annotate` with notes. Nested ops get paths, as there.

        Args:
            name: of the op.
            op: its type; by default the last part of its name.
            flops: float operations of one run.
            num_bytes: bytes that one run moves; kept as the type ``bytes:<n>``.
            types: more types to account by.
            inputs: paths of the ops whose results it takes.
        """
        outer = getattr(self._threads, "path", "")
        path = self._threads.path = f"{outer}/{name}" if outer else name
        note = self._notes.setdefault(path, _Note(op or name.rpartition("/")[2]))
        note.flops, note.num_bytes = flops or note.flops, num_bytes or note.num_bytes
        note.types.update(types)
        note.inputs = list(inputs) or note.inputs
        if self._stacks and not note.stack:
            note.stack = _stack(sys._getframe(2))  # beyond this generator and contextlib
        try:
            with annotate(name):
                yield
        finally:
            self._threads.path = outer

    def graph(self) -> GraphDef:
        """The ops and what they take from each other."""
        graph = GraphDef()
        for path, note in self._notes.items():
            graph.node.add(name=path, op=note.op, input=note.inputs)
        return graph

    def op_log(self) -> OpLogProto:
        """Types, flops and stacks, to be given to a profiler after its steps."""
        op_log = OpLogProto()
        strings: dict[str, int] = {"none": 0}
        for path, note in self._notes.items():
            entry = op_log.log_entries.add(name=path, float_ops=note.flops, types=sorted(note.types))
            if note.num_bytes:
                entry.types.append(f"bytes:{note.num_bytes}")
            for file, line, function, first_line in note.stack:
                trace = entry.code_def.traces.add(lineno=line, func_start_line=first_line)
                trace.file_id = strings.setdefault(file, len(strings))
                trace.function_id = strings.setdefault(function, len(strings))
        for text, id_ in strings.items():
            op_log.id_to_string[id_] = text
        return op_log


def _stack(frame: FrameType | None) -> list[tuple[str, int, str, int]]:
    """(file, line, function, its first line) from the outermost frame to the one that annotates."""
    frames = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.endswith("contextlib.py"):
            frames.append((code.co_filename, frame.f_lineno, code.co_name, code.co_firstlineno))
        frame = frame.f_back
    return frames[::-1]
