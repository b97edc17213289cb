"""Annotations: op names for the launches made inside them."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from collector.tracing.resumed_bodies import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from inspect import Signature
    from types import FrameType, TracebackType

    from collector._convert import AnnotationStack
    from collector.recording.annotation_details import Details
    from collector.sources import Source
    from collector.tracing.known_details import KnownDetails

    Function = TypeVar("Function", bound=Callable[..., Any])


_at_failed_blocks: list[Callable[[FrameType], None]] = []


def at_failed_blocks(end_inside: Callable[[FrameType], None]) -> None:
    """Have a function called when an error leaves the block of an annotation, before the annotation is left.

    Args:
        end_inside: leaves annotations inside the block whose end nothing else reports; called with the block's frame.
    """
    _at_failed_blocks.append(end_inside)


class _DeclaredSignature:
    """The signature of a class that `help` and notebooks show, where its ``__init__`` takes any keywords."""

    def __init__(self, declared: Callable[..., None]) -> None:
        self._declared = declared

    def __get__(self, instance: object, owner: type) -> Signature:
        if instance is not None:  # which has a signature of its own if it can be called
            raise AttributeError("__signature__")
        from inspect import signature  # slower to import than the rest of the tracing API

        declared = signature(self._declared)
        return declared.replace(parameters=tuple(declared.parameters.values())[1:])


class annotate:  # noqa: N801 - reads as the verb it is: `with annotate("conv"):`
    """Name the GPU work launched in a block or a function.

    Annotations nest, separately for each thread and asyncio task; the inner annotation's path is the outer path, ``/``
    and the inner name. ``/`` within a name nests too. While nothing is traced, an annotation does nothing and costs
    almost nothing; an annotation entered before the trace began names nothing in it.

    >>> with collector.annotate("layer1/conv"):
    ...     launch()
    >>> @collector.annotate("optimizer")
    ... def update(): ...

    An annotation follows its asyncio task: it names the task's launches before and after an ``await``, those of the
    tasks and ``asyncio.to_thread`` calls that begin inside it, and no others. A decorated generator has its name only
    while it runs. A ``with`` block of a generator that has a ``yield`` inside names nothing, because Python does not
    report that the caller runs meanwhile; ``ledger.annotations_suspended`` counts these blocks. Generators of
    ``contextlib.contextmanager`` and of pytest's fixtures name the launches of the block or test that uses them.
    Threads begin without a name, unless they run in a copied context.

    `collector.profiler` and timelines use further details of the op:

    >>> with collector.annotate("layer1/matmul", op="MatMul", flops=2 * m * n * k, inputs=["embedding"]):
    ...     launch()

    Args:
        name: the name of the op; ``/`` nests.
        flops: float operations of this run, without those of annotations inside it that have their own number.
        bytes: bytes read and written, counted in the same way.
        op: the op's type, such as ``MatMul``; by default the last part of the name.
        inputs: names of the annotations whose results it uses. A name refers to the nearest annotation of that name:
            first in the same scope, then in the enclosing scopes.
        stack: record the Python stack at every entry; ``collector.trace(stacks=True)`` does so for all annotations.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the name is empty, or a number is negative, not finite or beyond 64 bits.
    """

    __slots__ = ("_noted", "_stack", "name")

    name: str
    _stack: AnnotationStack | None
    """The stack of the session in which the annotation was entered last; None: it is not entered."""
    _noted: _Noted | None

    # After the first trace has begun, ``native/bindings/annotate_methods.cpp`` does the usual cases of these methods.
    # torch.compile always reads the code here.

    def __init__(
        self,
        name: str,
        *,
        flops: float | None = None,
        bytes: float | None = None,  # noqa: A002 - the word that people look for
        op: str | None = None,
        inputs: Iterable[str] | None = None,
        stack: bool = False,
    ) -> None:
        """Store the op's name and details; see the class."""

    if not TYPE_CHECKING:
        __signature__ = _DeclaredSignature(__init__)

        # This also runs while nothing is traced: five keywords with defaults would cost a fifth of its time.
        def __init__(self, name, **noted):  # noqa: ANN001, ANN003, ANN204
            """Store the op's name and details; see the class."""
            try:
                if not name > "0" and not name.strip("/ "):  # a fast test that most names pass
                    raise ValueError("an annotation needs a name; this one is empty")
            except (AttributeError, TypeError):
                given = type(name).__name__
                if isinstance(name, type):
                    given = f"the class {name.__name__}: give a name, and decorate methods"
                elif hasattr(name, "__name__"):
                    given = f"a {given}: write @annotate({name.__name__!r}) above it"
                raise TypeError(f"an annotation's name is text, not {given}") from None
            self.name = name
            self._stack = None
            self._noted = _note(**noted) if noted else None

    def __enter__(self) -> annotate:
        recorder = _recorder  # read once: another thread may end the session at any time
        if recorder is not None and (_is_compiling is None or not _is_compiling()):
            stack = self._stack = recorder.stack
            try:
                noted = self._noted
                stack.enter(self, self.name, 0 if noted is None and not recorder.stacks else recorder.number(noted))
            except BaseException:
                stack.leave(self)  # nobody leaves an annotation whose entry a Ctrl-C interrupted
                raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is not None:
            for end_inside in _at_failed_blocks:
                end_inside(sys._getframe(1))
        stack = self._stack  # of the entry: the session may have ended, and another may have begun, since then
        if stack is not None:
            stack.leave(self)
            recorder = _recorder
            if recorder is not None and recorder.stack is not stack:
                # Another thread may have entered this object in an earlier session, and have noted that one after us.
                recorder.stack.leave(self)

    def __getstate__(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """The state of a copy, which is not entered: a model that has annotations is copied and saved."""
        slots = {"name": self.name, "_noted": self._noted, "_stack": None}
        return getattr(self, "__dict__", None), slots

    def __call__(self, function: Function) -> Function:
        """Decorate a function, coroutine function, generator function or asynchronous generator function."""
        wrapper = wrapped(function, lambda: contextlib.nullcontext(_Runs(self)))
        if wrapper is not None:
            return wrapper

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            if _recorder is None or (_is_compiling is not None and _is_compiling()):  # the rest tests it again
                return function(*args, **kwargs)
            with _copy(self, self._noted):
                return function(*args, **kwargs)

        return cast("Function", plain)


class _Noted(NamedTuple):
    """The given details of an op after their check; None means not given."""

    flops: float | None
    num_bytes: float | None
    op: str | None
    inputs: tuple[str, ...] | None
    with_stack: bool


def _note(
    flops: Any = None,
    bytes: Any = None,  # noqa: A002 - as annotate has it
    op: Any = None,
    inputs: Any = None,
    stack: Any = False,
) -> _Noted:
    """The given details, checked. It also runs while nothing is traced, so valid details must cost little."""
    if inputs is not None and inputs.__class__ in (list, tuple):
        inputs = tuple(inputs)
    good = (
        (flops is None or ((flops.__class__ is int or flops.__class__ is float) and 0 <= flops < _LIMIT))
        and (bytes is None or ((bytes.__class__ is int or bytes.__class__ is float) and 0 <= bytes < _LIMIT))
        and (op is None or (op.__class__ is str and op > "0"))
        and (inputs is None or (inputs.__class__ is tuple and all(x.__class__ is str and x > "0" for x in inputs)))
        and (stack is False or stack is True)
    )
    if not good:
        from collector.checked_arguments import switch
        from collector.recording.annotation_details import Details

        details = Details.of(flops, bytes, op, inputs)
        stack = switch("annotate(stack=)", stack)
        flops, bytes, inputs = details.flops, details.num_bytes, details.inputs  # noqa: A001
    return tuple.__new__(_Noted, (flops, bytes, op, inputs, stack))  # half the cost of _Noted(…)


_note.__qualname__ = "annotate"  # the name in Python's own errors about keywords
_LIMIT = 2**63


def _copy(annotation: annotate, noted: _Noted | None) -> annotate:
    """A single-use annotation of the same name: the object identifies the block that leaves it."""
    copy = annotate.__new__(annotate)
    copy.name, copy._noted, copy._stack = annotation.name, noted, None
    return copy


class _Runs:
    """The runs of one call of a generator or coroutine: all have the name, only the first has the numbers."""

    __slots__ = ("_annotation", "_noted")

    def __init__(self, annotation: annotate) -> None:
        self._annotation = annotation
        self._noted = annotation._noted

    def next(self) -> annotate:
        """The annotation to enter for the next run."""
        run = _copy(self._annotation, self._noted)
        if self._noted is not None:
            self._noted = self._noted._replace(flops=None, num_bytes=None)
        return run


_FOLDER = __file__.removesuffix("annotate.py")
_OWN_PLACES = (
    __file__,
    f"{_FOLDER}resumed_bodies.py",
    _FOLDER.removesuffix(f"tracing{os.sep}") + f"adapters{os.sep}",
)
"""Files whose frames are in no stack: this one, that of the wrappers, and the hooks of the adapters."""


_MOST_CHECKED = 4096
"""The most checked details whose number is remembered."""


class _Recorder:
    """Passes annotations to one session's source; each session has its own recorder."""

    def __init__(self, destination: _Destination, on_first: Callable[[], None] | None) -> None:
        from collector.runtime.extension import load_extension
        from collector.tracing.suspended_blocks import waits_inside

        source = destination.source
        self.stacks = destination.stacks
        self.known = destination.known
        self._is_recorded: Callable[[], bool] | None = getattr(source, "is_recorded", None)
        self._checked: dict[_Noted, int] = {}
        calls = getattr(source, "annotation_calls", None)
        self.stack: AnnotationStack = load_extension().annotation_stack(
            source.push_annotation, source.pop_annotation, calls, self.known.continued, waits_inside, on_first
        )
        """`enter` enters an annotation of that name and number of details (0: none) in this context; it is for
        `annotate.__enter__`, which it takes for its caller. `leave` leaves it, in whatever order; nothing happens if it
        was not entered in this context or thread."""

    def number(self, noted: _Noted | None) -> int:
        """The number of the details; new details get a new number. 0: nothing is recorded, or there is no room."""
        if noted is not None and (number := self._checked.get(noted, 0)):
            return number
        if self._is_recorded is not None and not self._is_recorded():
            return 0
        from collector.recording.annotation_details import Details, stack_of

        details = Details() if noted is None else Details.of(*noted[:4])
        if self.stacks or (noted is not None and noted.with_stack):
            frame = sys._getframe()
            details = details._replace(stack=stack_of(frame, _OWN_PLACES))
        number = self.known.number_of(details)
        if noted is not None and number and not details.stack:
            if len(self._checked) >= _MOST_CHECKED:
                self._checked.clear()
            self._checked[noted] = number
        return number

    def detach(self) -> None:
        """Never use the source again, even if annotations are left later."""
        self.stack.detach()
        self.known.detach()


_recorder: _Recorder | None = None
_is_compiling: Callable[[], bool] | None = None
"""Whether torch.compile is reading the code. Compiled code has no annotations, traced or not. Otherwise the traced step
would differ from the untraced step, because Dynamo does not compile the code around a call that it cannot compile."""


class Ended(NamedTuple):
    """The annotations of a session that has ended."""

    details: Sequence[Details]
    """Their details, by the number by which the source knows them, which counts from 1."""
    counters: Mapping[str, int]
    """Figures of the ledger: what could not be attributed."""


def load_annotations() -> None:
    """Import the modules that the first `send_annotations_to` needs, so that the import is not part of a step."""
    from collector.tracing import known_details, suspended_blocks, task_steps  # noqa: F401

    task_steps.load()


def send_annotations_to(
    source: Source | None,
    *,
    stacks: bool = False,
    on_first: Callable[[], None] | None = None,
    is_bounded: bool = False,
) -> Ended:
    """Pass annotations to ``source`` from now on. For the session that owns the source.

    Args:
        source: the source that records; None: that of `send_annotations_always`, or none.
        stacks: record the Python stack of every annotation; that of `send_annotations_always` has its own choice.
        on_first: called once, when the first annotation is entered.
        is_bounded: limit the memory for details, where the source keeps no records in memory.

    Returns:
        The facts about the annotations since the last call.
    """
    global _recorder, _is_compiling
    from collector.runtime.extension import convert_extension
    from collector.tracing import task_steps

    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    _is_compiling = getattr(compiler, "is_dynamo_compiling", None)
    ended = _recorder
    if ended is not None:
        convert_extension.annotate_in(None, False)
        task_steps.follow(None)
        ended.stack.end()  # ended before it is forgotten: after a Ctrl-C in between, the next call ends it
    destination = _standing if source is None else _Destination.of(source, stacks=stacks, is_bounded=is_bounded)
    if destination is None:
        _recorder = None
    else:
        recorder = _Recorder(destination, on_first)
        task_steps.follow(recorder.stack)
        _recorder = recorder
        convert_extension.hasten_annotate(annotate, _at_failed_blocks)
        convert_extension.annotate_in(recorder.stack, destination.stacks)
    if ended is None:
        return Ended((), {})
    names = ("annotations_mixed", "annotations_unfollowed", "annotations_suspended")
    counters = dict(zip(names, ended.stack.counts(), strict=True))
    return Ended(ended.known.in_order, counters | ended.known.figures())


def records_stacks() -> bool:
    """Whether the Python stack of every annotation is recorded now."""
    return _recorder is not None and _recorder.stacks


def send_annotations_always(source: Source, *, stacks: bool = False) -> None:
    """Pass annotations to ``source`` while no session receives them, for a process that may be recorded at any time.

    A second call with the same choice of ``stacks`` changes nothing.
    """
    global _standing
    if _standing is not None and _standing.stacks == stacks:
        return
    if _standing is None:
        _standing = _Destination.of(source, stacks=stacks, is_bounded=True)
    else:  # numbers of details count on: the recordings of the process know all that it has noted
        _standing = _Destination(source, stacks, _standing.known)
    if _recorder is None:
        send_annotations_to(None)


class _Destination(NamedTuple):
    """A source that gets annotations."""

    source: Source
    stacks: bool
    """Whether it gets the Python stack of every annotation."""
    known: KnownDetails

    @classmethod
    def of(cls, source: Source, *, stacks: bool, is_bounded: bool) -> _Destination:
        """The destination of a source that has not received any annotations yet."""
        from collector.tracing.known_details import KnownDetails

        return cls(source, stacks, KnownDetails(source, is_bounded=is_bounded))


_standing: _Destination | None = None
"""The source that gets annotations where no session does."""


def is_recording() -> bool:
    """Whether annotations that are entered now reach a source."""
    return _recorder is not None


def forget_annotations() -> None:
    """Pass annotations to no source from now on and call nothing, as in a forked child."""
    global _recorder, _standing
    _standing = None
    if _recorder is not None:
        from collector.runtime.extension import convert_extension
        from collector.tracing import task_steps

        _recorder.detach()
        convert_extension.annotate_in(None, False)
        task_steps.follow(None)
    _recorder = None


def _start_again_in_child() -> None:
    """After a fork: a session is the parent's.

    A process that others may record is one in the child, too, as long as CUDA can be used there.
    """
    global _standing
    standing, recorder = _standing, _recorder
    if standing is not None:
        from collector import _native

        if _native.is_forked():
            standing = None
    if standing is not None and recorder is not None and recorder.known is standing.known:
        recorder.known.unlock()
        return
    forget_annotations()
    if standing is not None:
        _standing = standing
        send_annotations_to(None)


os.register_at_fork(after_in_child=_start_again_in_child)
