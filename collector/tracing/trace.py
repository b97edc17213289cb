"""`collector.trace`: the options of a session, which are checked before anything is traced."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from collector.errors import UnknownFormatError
from collector.files.atomic_files import expanded
from collector.files.path_kinds import is_folder
from collector.formats.output_paths import check_words
from collector.formats.registry import output_of, suffix_of
from collector.options import KINDS, TraceOptions, kind_names
from collector.runtime.optional_packages import optional_package
from collector.sources import SOURCE_NAMES
from collector.tracing.nvtx import domain_names
from collector.tracing.scheduled_session import ScheduledSession
from collector.tracing.scheduled_windows import check_path_of_windows
from collector.tracing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.sources import Source

    Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def trace(path: Function, /) -> Function: ...


@overload
def trace(
    path: str | os.PathLike[str] | None = None,
    *,
    strict: bool = ...,
    source: str | Source = ...,
    synchronize: bool = ...,
    kinds: str | Iterable[str] = ...,
    buffer_bytes: int = ...,
    max_buffers: int = ...,
    timeout_ms: int = ...,
    rank: int | None = ...,
    job: str = ...,
    stacks: bool = ...,
    journal: str | os.PathLike[str] | None = ...,
    stream: bool = ...,
    nvtx: bool | str | Iterable[str] | None = ...,
    graphs: str = ...,
    counters: bool = ...,
    dataset: str | os.PathLike[str] | None = ...,
    label: str = ...,
    git_revision: bool = ...,
    budget: str | None = ...,
    schedule: Callable[[int], Any] | None = ...,
    on_window: Callable[[Session], object] | None = ...,
) -> Session: ...


def trace(
    path: str | os.PathLike[str] | Function | None = None,
    *,
    strict: bool = False,
    source: str | Source = "auto",
    synchronize: bool = True,
    kinds: str | Iterable[str] = KINDS,
    buffer_bytes: int = TraceOptions.buffer_bytes,
    max_buffers: int = TraceOptions.max_buffers,
    timeout_ms: int = TraceOptions.timeout_ms,
    rank: int | None = None,
    job: str = TraceOptions.job,
    stacks: bool = False,
    journal: str | os.PathLike[str] | None = None,
    stream: bool = False,
    nvtx: bool | str | Iterable[str] | None = None,
    graphs: str = TraceOptions.graphs,
    counters: bool = False,
    dataset: str | os.PathLike[str] | None = None,
    label: str = "",
    git_revision: bool = False,
    budget: str | None = None,
    schedule: Callable[[int], Any] | None = None,
    on_window: Callable[[Session], object] | None = None,
) -> Session | Function:
    """Return a session that traces the GPU work of a block or a function.

    >>> with collector.trace("step.json") as step:
    ...     train_step()
    >>> print(step.summary())

    As a decorator without options it needs no parentheses: ``@collector.trace``.

    If nothing can be traced, the body still runs, one `collector.CollectorWarning` gives the cause and the remedy, and
    `Session.unavailable` contains the reason.

    While a trace is open, other profilers in this process record no GPU activity, and PyTorch's profiler never does
    again if its first use falls into the trace: use ``torch.profiler`` before or after a trace, not inside. Earlier use
    does no harm: torch keeps CUPTI's only subscription permanently, so while its profiler is idle the trace is
    recorded without a subscription.

    Args:
        path: the file for the trace, written at the end. Its suffix is the format: ``.json`` Chrome trace, ``.pftrace``
            Perfetto trace, both also with ``.gz``; ``.pb`` and ``.pbtxt`` RunMetadata; ``.gpurec`` the recording. An
            existing file is replaced (for a link, the file that it points to); ``~`` is the home folder. Of several
            ranks or processes, each writes its own file: `Session.path`. ``{rank}``, ``{pid}``, ``{host}``, ``{step}``
            (the use of this session, counted from 0; with a schedule, the first step of the window) and
            ``{env:VARIABLE}`` are filled in, in all paths. Relative paths are those of the working directory in which
            the step, or the schedule, begins.
        strict: raise a `collector.CollectorError` instead of warning.
        source: ``auto``, ``native``, ``cupti-python``, or a `collector.sources.Source`.
        synchronize: wait at the end for unfinished work of the devices, so that the trace contains it.
        kinds: the kinds of activity to record, a name or several, of `collector.options.KINDS` (by default, all of
            them) and `collector.options.KINDS_ON_REQUEST`.
        buffer_bytes: bytes of one activity buffer.
        max_buffers: the maximum number of buffers at one time.
        timeout_ms: the time that the end waits for outstanding buffers.
        rank: this process's rank, put before the device names together with ``job``.
        job: the job's name in the device names.
        stacks: record the Python stack at every annotation, for the code view of `collector.profiler`.
        journal: a file for the records of the open step, in case the program is killed or crashes. `collector.load` and
            every command read it. It is deleted when the step has ended and its results are saved; an existing journal
            is never overwritten. Only the native source writes journals.
        stream: keep no record in memory, so that a step of any length takes the same amount of it. ``journal`` is then
            the name of a folder of segments, which is kept and which `collector.load` reads; the first use of
            `Session.recording` loads it, and another process writes ``path`` from it.
        nvtx: record the NVTX ranges of the program and its libraries as annotations, or only those of some domains
            (``""`` is the default domain). By default ranges are recorded if `collector.nvtx.arm` was called, or
            ``COLLECTOR_NVTX=1`` is set. A step of a process that is recorded has the domains of the recording.
        graphs: ``nodes`` records every kernel, copy and memset of a CUDA graph; ``whole`` records each launch of a
            graph as one activity, at the lowest cost per launch.
        counters: sample clocks, power, temperature, used memory and throttling of the GPUs 20 times a second, on a
            thread of its own, as counters of the timeline. Needs nvidia-ml-py.
        dataset: a folder of Parquet files to which every step is added, for questions in SQL over many steps, ranks and
            runs; see `collector.dataset`. Ranks may share the folder. Needs pyarrow.
        label: a name for the run, such as ``"batch 64"``: `collector ui` lists and searches it, and it is written into
            every file of the trace.
        git_revision: record the revision of the git repository that the working directory is in, likewise.
        budget: the maximum cost of recording, such as ``1%`` of the time of one core. If the measured cost is higher
            for two seconds, kinds are left out until the step ends, and the ledger says which and when; see
            docs/long_runs.md. A budget controls the cost and does not guarantee it. Only the native source supports it.
        schedule: trace chosen steps of the block, each of which ends with a call of `Session.step`; see
            `collector.schedule` and `collector.every`. The steps that follow one another are a window. Each window has
            results and a file of its own, if ``{step}`` is in the name; else all windows are in one file, which is
            written at the end.
        on_window: called with the session after each window, while the session has its results.

    Raises:
        collector.MissingDependencyError: a dataset is asked for, and pyarrow is not installed; or counters, and
            nvidia-ml-py is not.
        collector.UnknownFormatError: no format has the suffix of ``path``.
        collector.OutputError: a path has a word in braces that is not a placeholder.
        ValueError: an option has an invalid value.
        TypeError: an option has the wrong type.
    """
    if isinstance(source, str) and source not in SOURCE_NAMES:
        raise ValueError(f"unknown source {source!r}: choose one of {', '.join(SOURCE_NAMES)}")
    function, path = (path, None) if callable(path) and not isinstance(path, os.PathLike) else (None, path)
    target = None if path is None else expanded(path)
    if target is not None:
        _check_suffix(target, str(path))
    options = TraceOptions(
        path=target,
        strict=strict,
        source=source,
        synchronize=synchronize,
        kinds=kind_names(kinds),
        buffer_bytes=buffer_bytes,
        max_buffers=max_buffers,
        timeout_ms=timeout_ms,
        rank=rank,
        job=job,
        stacks=stacks,
        journal=None if journal is None else expanded(journal),
        stream=stream,
        nvtx=nvtx if nvtx is None or isinstance(nvtx, bool) else domain_names(nvtx),
        graphs=graphs,
        counters=counters,
        dataset=None if dataset is None else expanded(dataset),
        label=label,
        git_revision=git_revision,
        budget="" if budget is None else budget,
        schedule=schedule,
        on_window=on_window,
    )
    for each in (options.path, options.journal, options.dataset):
        if each is not None:
            check_words(each)
    if target is not None and schedule is not None:
        check_path_of_windows(target, schedule)
    if options.dataset is not None:
        optional_package("pyarrow.parquet")
    if options.counters:
        optional_package("pynvml")
    if function is None:
        return Session(options) if schedule is None else ScheduledSession(options, schedule)
    if options != TraceOptions():
        raise TypeError("a function and options cannot be combined: write @collector.trace(...) above the function")
    return Session(options)(function)


def _check_suffix(target: Path, given: str) -> None:
    """Raise `collector.UnknownFormatError` if no format can be written as ``target``, which is ``given`` expanded."""
    if not given:
        raise UnknownFormatError("the name of the file is empty", "Give it one, such as step.json")
    if not suffix_of(target.name) and (given.endswith(os.sep) or is_folder(target)):
        raise UnknownFormatError(
            f"{given} is a folder", f"Name a file in it, or add the step to a dataset: trace(dataset={given!r})"
        )
    output_of(target)
