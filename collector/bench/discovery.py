"""Benchmarks in files: marked functions in ``bench_*.py``, run over their axes.

>>> @bench.benchmark
... @bench.parametrize("n", [256, 1024, 4096])
... def saxpy(n):
...     return bench.case({"torch": lambda: ..., "mine": lambda: ...}, bytes=12 * n)
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import itertools
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from collector.bench.benchmark_errors import BenchmarkError
from collector.bench.benchmark_titles import benchmark_title
from collector.files.path_kinds import readable_mode
from collector.text.wording import counted

Axes = tuple[tuple[str, tuple[Any, ...]], ...]
_AXES = "__collector_bench_axes__"
_MARKED = "__collector_bench_marked__"
"""The global of a file of benchmarks that has all that were marked, also those whose name is now that of another."""


@dataclass(frozen=True)
class Case:
    """The arms that one benchmark compares, and options of `collector.bench.compare`."""

    arms: Mapping[str, Callable[[], Any]]
    options: Mapping[str, Any]


def case(arms: Mapping[str, Callable[[], Any]], **options: Any) -> Case:
    """Return the result of a benchmark function: ``arms`` and options of `collector.bench.compare`."""
    return Case(arms, options)


@dataclass(frozen=True)
class Benchmark:
    """A marked function with its axes and its options of `collector.bench.compare`."""

    function: Callable[..., Any]
    axes: Axes
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function unchanged."""
        return self.function(*args, **kwargs)


@dataclass(frozen=True)
class Instance:
    """A benchmark with a value for each of its axes."""

    benchmark: Benchmark
    parameters: Mapping[str, Any]

    @property
    def title(self) -> str:
        """``saxpy[n=256]``."""
        return benchmark_title(self.benchmark.name, self.parameters)

    @contextlib.contextmanager
    def prepared(self) -> Iterator[Case]:
        """Run the function up to its case and, if it is a generator, to its end afterwards.

        Raises:
            BenchmarkError: the function raises, or returns no `case` or several.
        """
        try:
            made = self.benchmark.function(**self.parameters)
            given = next(made, None) if inspect.isgenerator(made) else made
        except (Exception, SystemExit) as error:
            raise BenchmarkError(f"benchmark {self.title} raised {type(error).__name__}: {error}") from error
        try:
            if isinstance(given, Mapping):
                given = case(given)
            if inspect.iscoroutine(given):
                given.close()  # Python warns about one that was never awaited
            if not isinstance(given, Case):
                raise BenchmarkError(
                    f"benchmark {self.title} gives {type(given).__name__} instead of arms", "Return bench.case({...})"
                )
            yield replace(given, options={**self.benchmark.options, **given.options})
        except BaseException:
            with contextlib.suppress(BenchmarkError):  # the first error is the cause
                self._finish(made)
            raise
        self._finish(made)

    def _finish(self, made: object) -> None:
        """Run the function from its case to its end, if it is the generator ``made``.

        Raises:
            BenchmarkError: the function raises, or yields again.
        """
        if not inspect.isgenerator(made):
            return
        try:
            next(made)
        except StopIteration:
            return
        except (Exception, SystemExit) as error:
            raise BenchmarkError(
                f"benchmark {self.title} raised {type(error).__name__} after its case: {error}"
            ) from error
        made.close()
        raise BenchmarkError(f"benchmark {self.title} yields more than one case", "Use bench.parametrize for several")


@overload
def benchmark(function: Callable[..., Any], /) -> Benchmark: ...
@overload
def benchmark(**options: Any) -> Callable[[Callable[..., Any]], Benchmark]: ...
def benchmark(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Mark a function that returns, or yields and then cleans up, a `case`; options are `collector.bench.compare`'s."""

    def mark(marked: Callable[..., Any]) -> Benchmark:
        made = Benchmark(marked, getattr(marked, _AXES, ()), options)
        marked_in_file = getattr(marked, "__globals__", {}).get(_MARKED)
        if marked_in_file is not None:
            marked_in_file.append(made)
        return made

    return mark if function is None else mark(function)


def parametrize(axis: str, values: Sequence[Any]) -> Callable[[Any], Any]:
    """Run a benchmark once for each of ``values``, passed as its parameter ``axis``; several axes make a grid."""
    chosen = tuple(values)
    if not chosen:
        raise ValueError(f"axis {axis!r} has no values")

    def mark(marked: Any) -> Any:
        added = ((axis, chosen),)
        if isinstance(marked, Benchmark):
            return replace(marked, axes=added + marked.axes)
        setattr(marked, _AXES, added + getattr(marked, _AXES, ()))
        return marked

    return mark


def discover(paths: Sequence[Path], pattern: str = "") -> list[Instance]:
    """Return the benchmarks in files, and in ``bench_*.py`` below folders, whose title matches ``pattern`` (search).

    Raises:
        BenchmarkError: a file is missing or cannot be imported, there are no benchmarks, two have the same title, or
            the pattern is not a regex.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise BenchmarkError(f"-k {pattern!r} is not a regular expression: {error}") from error
    places = [(file, file.resolve()) for file in benchmark_files(paths)]  # a file may change the working directory
    found = [
        (file, instance) for file, place in places for each in _benchmarks(file, place) for instance in _instances(each)
    ]
    chosen = [(file, instance) for file, instance in found if wanted.search(instance.title)]
    if not found:
        raise BenchmarkError(f"no benchmarks in {', '.join(map(str, paths))}", "Mark functions with @bench.benchmark")
    if not chosen:
        raise BenchmarkError(f"none of {counted('{} benchmark[|s]', len(found))} matches {pattern!r}")
    seen_in: dict[str, Path] = {}
    for file, instance in chosen:
        if instance.title in seen_in:
            raise _of_one_title(instance.title, (seen_in[instance.title], file))
        seen_in[instance.title] = file
    return [instance for _, instance in chosen]


def benchmark_files(paths: Sequence[Path]) -> list[Path]:
    """Return the given files, and the ``bench_*.py`` below given folders, each file once.

    Raises:
        BenchmarkError: one is missing, or neither a file nor a folder.
    """
    files: list[Path] = []
    for path in paths:
        try:
            mode = readable_mode(path)
        except OSError as error:
            raise BenchmarkError(f"{path}: {error.strerror or error}") from error
        if stat.S_ISDIR(mode):
            files += sorted(path.rglob("bench_*.py"))
        elif stat.S_ISREG(mode):
            files.append(path)
        else:
            raise BenchmarkError(f"{path} is neither a file nor a folder")
    return list({file.resolve(): file for file in reversed(files)}.values())[::-1]


def _benchmarks(file: Path, place: Path) -> list[Benchmark]:
    """The benchmarks in ``file``, which is at ``place``."""
    # The same in every process, because the text of an axis' value may contain it.
    name = f"_collector_bench_{zlib.crc32(os.fsencode(place)):x}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise BenchmarkError(f"{file} is not a Python file", "Give files, or folders of files, named bench_*.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    marked: list[Benchmark] = []
    setattr(module, _MARKED, marked)
    sys.path.insert(0, str(place.parent))
    try:
        # Bypasses the bytecode cache, which mistakes a file edited within the same second for the old one.
        exec(compile(place.read_bytes(), place, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        raise BenchmarkError(f"cannot import {file}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    # A benchmark may have several names in its module.
    found = {id(each.function): each for each in vars(module).values() if isinstance(each, Benchmark)}
    names = {each.name for each in found.values()}
    for each in marked:
        if each.name in names and id(each.function) not in found:
            raise _of_one_title(each.name, [file])
    return list(found.values())


def _of_one_title(title: str, files: Iterable[Path]) -> BenchmarkError:
    return BenchmarkError(
        f"two benchmarks have the title {title}: in {' and '.join(dict.fromkeys(map(str, files)))}",
        "Give them different names, or values of axes with different texts",
    )


def _instances(found: Benchmark) -> list[Instance]:
    names = [axis for axis, _ in found.axes]
    grid = itertools.product(*(values for _, values in found.axes))
    return [Instance(found, dict(zip(names, point, strict=True))) for point in grid]
