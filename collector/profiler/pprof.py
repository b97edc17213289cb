"""A profile for Google's pprof: one sample per node, located by the lines that created it or by its name scopes.

For a TensorFlow graph it equals tfprof's in every field: a location is a function and the line that calls it, so that
the line which creates the node is in none, and nodes whose stack is a prefix of another are left out. Without a graph,
as for recorded steps, every line is a location, including the innermost, a sample's count is the number of the node's
runs, and name scopes can take the place of lines.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import NamedTuple

from collector.profiler.profiler_errors import ViewError
from collector.profiler.views.code import CodeNode
from collector.profiler.views.group import Group, Member
from collector.profiler.views.tree import Shown
from collector.protos import PprofProfile

MEASURES: dict[str, tuple[str, str, str]] = {
    "micros": ("exec_micros", "microseconds", "Sum of accelerator execution time and cpu execution time."),
    "accelerator_micros": ("accelerator_exec_micros", "microseconds", "Accelerator execution time."),
    "cpu_micros": ("cpu_exec_micros", "microseconds", "CPU execution time."),
    "bytes": ("requested_bytes", "bytes", "Sum of operation total memory requests, excluding deallocations."),
    "peak_bytes": ("peak_bytes", "bytes", "Sum of operation peak memory usage."),
    "residual_bytes": ("residual_bytes", "bytes", "Sum of operation allocated memory after finish."),
    "output_bytes": ("output_bytes", "bytes", "Sum of operation output size."),
    "params": ("parameters", "count", "Model parameters."),
    "float_ops": ("float_ops", "count", "Model float operations (Only available if defined)."),
}
"""Attribute -> (counter, unit, comment)."""

NODE_LABEL = "graph node:"
_PROGRAM = "recorded step"


def measure_of(select: frozenset[str]) -> str:
    """The one attribute that a pprof profile shows.

    Raises:
        ViewError: not exactly one is selected, or one without a number.
    """
    if len(select) != 1:
        raise ViewError("Can only select 1 attribute for pprof output")
    (attribute,) = select
    if attribute not in MEASURES:
        raise ViewError(f"pprof doesn't support -select={attribute}", f"Select one of {', '.join(MEASURES)}")
    return attribute


class _Table:
    """Strings by index, in order of first use; ``""`` is 0."""

    def __init__(self) -> None:
        self._indexes = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self._indexes.setdefault(text, len(self._indexes))

    def __iter__(self) -> Iterator[str]:
        return iter(self._indexes)


class ProfileBuilder:
    """Collects functions, locations and samples, then writes them sorted by name."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._counter, self._unit, self._comment = MEASURES[attribute]
        self._strings = _Table()
        self._functions: dict[tuple[bytes, bytes, int], tuple[int, int, int]] = {}
        self._locations: dict[tuple[bytes, bytes, int], tuple[int, int]] = {}
        self._samples: dict[bytes, tuple[list[int], list[int], int]] = {}

    def location(self, file: str, function: str, first_line: int, caller_file: str, line: int) -> int:
        """The id of ``function`` called from ``line`` of ``caller_file``.

        As in tfprof, two functions with one name called from one line share one location: that of the first.
        """
        key = (caller_file.encode(), function.encode(), line)
        if key not in self._locations:
            self._locations[key] = (len(self._locations) + 1, self._function(file, function, first_line))
        return self._locations[key][0]

    def _function(self, file: str, function: str, first_line: int) -> int:
        key = (file.encode(), function.encode(), first_line)
        known = self._functions.get(key)
        if known is None:
            stem = file.rpartition("/")[2].partition(".")[0]
            name = f"{stem}:{function}" if file else function
            known = (len(self._functions) + 1, self._strings[name], self._strings[file])
            self._functions[key] = known
        return known[0]

    def sample(self, member: Member | Shown, locations: list[int], count: int = 1) -> None:
        """One graph node, with ``locations`` from the outermost to the line that created it."""
        label = (self._strings[NODE_LABEL], self._strings[member.name])[1]
        value = getattr(member.own, self._counter)
        self._samples[member.name.encode()] = (locations[::-1], [count, value], label)

    def build(self, program: str = "") -> PprofProfile:
        """The profile so far. Without the name of a ``program``, pprof complains about a missing one."""
        strings = self._strings
        profile = PprofProfile()
        for type_, unit in (("count", "count"), (self._attribute, self._unit)):
            profile.sample_type.add(type=strings[type_], unit=strings[unit])
        for _, (locations, values, name) in sorted(self._samples.items()):
            sample = profile.sample.add(location_id=locations, value=values)
            sample.label.add(key=strings[NODE_LABEL], str=name)
        for (_, _, line), (id_, function_id) in sorted(self._locations.items()):
            location = profile.location.add(id=id_, mapping_id=1 if program else 0)
            location.line.add(function_id=function_id, line=line)
        for (_, _, first_line), (id_, name, file) in sorted(self._functions.items()):
            profile.function.add(id=id_, name=name, filename=file, start_line=first_line)
        profile.comment.append(strings[self._comment])
        if program:  # all names are present: pprof need not look them up
            mapping = profile.mapping.add(id=1, filename=strings[program])
            mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = True
        profile.string_table.extend(strings)
        return profile


class _Place(NamedTuple):
    """A location and those around it: separate lists would make deep trees quadratic."""

    location: int
    outer: _Place | None

    def locations(self) -> list[int]:
        """The locations from the outermost to this one."""
        found: list[int] = []
        place: _Place | None = self
        while place is not None:
            found.append(place.location)
            place = place.outer
        return found[::-1]


def from_lines(root: Group, attribute: str) -> PprofProfile:
    """The displayed tree of the code view, weighted by ``attribute``: every line is a location."""
    builder = ProfileBuilder(attribute)
    pending: list[tuple[Group, _Place | None]] = [(child, None) for child in reversed(root.shown)]
    while pending:
        line, outer = pending.pop()
        if not isinstance(line, CodeNode) or line.frame is None:
            raise TypeError("only lines of code have locations")
        frame = line.frame
        function = frame.function + line.suffix
        here = _Place(builder.location(frame.file, function, max(frame.first_line, 0), frame.file, frame.line), outer)
        for member in line.members if line.shown else _members(line):
            builder.sample(member, here.locations(), member.own.run_count)
        pending.extend((callee, here) for callee in reversed(line.shown))
    return builder.build(program=_PROGRAM)


def from_scopes(root: Shown, attribute: str) -> PprofProfile:
    """The displayed tree of the scope view, weighted by ``attribute``: every scope is a location."""
    builder = ProfileBuilder(attribute)
    pending: list[tuple[Shown, _Place | None]] = [(child, None) for child in reversed(root.shown)]
    while pending:
        node, outer = pending.pop()
        here = _Place(builder.location("", node.name, 0, "", 0), outer)
        if node.account:
            builder.sample(node, here.locations(), node.own.run_count)
        pending.extend((child, here) for child in reversed(node.shown))
    return builder.build(program=_PROGRAM)


def from_code(root: Group, attribute: str) -> PprofProfile:
    """The displayed tree of the code view, weighted by ``attribute``, as tfprof writes it."""
    builder = ProfileBuilder(attribute)
    pending: list[tuple[Group | None, Group, list[int]]] = [(None, child, []) for child in reversed(root.shown)]
    while pending:
        caller, line, locations = pending.pop()
        if caller is not None:
            locations = [*locations, _call(builder, caller, line)]
        if not line.shown:
            for member in _members(line):
                builder.sample(member, locations)
        pending.extend((line, callee, locations) for callee in reversed(line.shown))
    return builder.build()


def _call(builder: ProfileBuilder, caller: Group, callee: Group) -> int:
    if not (isinstance(caller, CodeNode) and isinstance(callee, CodeNode) and caller.frame and callee.frame):
        raise TypeError("only lines of code have locations")
    frame = callee.frame
    return builder.location(
        frame.file, frame.function + callee.suffix, frame.first_line, caller.frame.file, caller.frame.line
    )


def _members(line: Group) -> Iterator[Member]:
    """Every node created at or below ``line``."""
    pending = [line]
    while pending:
        group = pending.pop()
        yield from group.members
        pending.extend(reversed(group.children))


def encode(profile: PprofProfile) -> bytes:
    """The gzip'd form for pprof. Equal profiles have equal bytes."""
    return gzip.compress(profile.SerializeToString(deterministic=True), mtime=0)
