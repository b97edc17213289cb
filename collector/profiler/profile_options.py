"""Options of a view: the nodes that count, the nodes shown, their order, and the output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from collector.checked_arguments import mapping
from collector.profiler.patterns import ANYTHING, Patterns
from collector.profiler.profiler_errors import OptionError
from collector.profiler.stats import Stats
from collector.protos import OptionsProto

OUTPUTS: dict[str, tuple[str, ...]] = {
    "file": ("outfile",),
    "none": (),
    "pprof": ("outfile",),
    "stdout": (),
    "timeline": ("outfile",),
}
"""Output type -> its settings, all of which are required."""


@dataclass(frozen=True)
class Output:
    """The output of an answer."""

    kind: str = "stdout"
    """A key of ``OUTPUTS``."""

    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Output:
        """Reads ``type`` or ``type:key=value,...``; ``""`` is stdout.

        Raises:
            OptionError: unknown type or key, or a missing one.
        """
        kind, _, rest = (text or "stdout").partition(":")
        if kind not in OUTPUTS:
            raise OptionError(f"unknown output type {kind!r}", f"Valid types: {','.join(OUTPUTS)}")
        settings: dict[str, str] = {}
        for pair in filter(None, rest.split(",")):
            words = [word for word in pair.split("=") if word]
            if len(words) < 2:
                raise OptionError(f"output setting {pair!r} has no value", f"Write -output {kind}:key=value,key=value")
            if words[0] not in OUTPUTS[kind]:
                raise OptionError(f"output type {kind!r} takes no {words[0]!r}")
            settings[words[0]] = "=".join(words[1:])
        for key in OUTPUTS[kind]:
            if key not in settings:
                raise OptionError(f"output type {kind!r} needs {key!r}", f"E.g. -output {kind}:{key}=...")
        return cls(kind, settings)

    @property
    def path(self) -> str:
        """The file it writes to (``file``, ``pprof``, ``timeline``)."""
        return self.settings["outfile"]

    def __str__(self) -> str:
        return self.kind + ":" + "".join(f"{key}={value}," for key, value in sorted(self.settings.items()))


@dataclass(frozen=True)
class Options:
    """One question to a profile. Defaults are those of the command line; see ``docs/profiler.md`` for each."""

    max_depth: int = 10
    min_bytes: int = 0
    min_peak_bytes: int = 0
    min_residual_bytes: int = 0
    min_output_bytes: int = 0
    min_micros: int = 0
    min_accelerator_micros: int = 0
    min_cpu_micros: int = 0
    min_params: int = 0
    min_float_ops: int = 0
    min_occurrence: int = 0
    step: int = -1
    order_by: str = "name"
    account_type_regexes: tuple[str, ...] = (ANYTHING,)
    start_name_regexes: tuple[str, ...] = (ANYTHING,)
    trim_name_regexes: tuple[str, ...] = ()
    show_name_regexes: tuple[str, ...] = (ANYTHING,)
    hide_name_regexes: tuple[str, ...] = ()
    account_displayed_op_only: bool = False
    select: frozenset[str] = frozenset(("micros",))
    output: Output = Output()

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> Options:
        """Converts the dict of ``ProfileOptionBuilder``. Absent lists are empty, so they match nothing.

        Raises:
            OptionError: the output is invalid, or a value has a wrong type.
            TypeError: ``words`` is not a dict.
        """
        mapping("options", words)
        values: dict[str, Any] = {}
        for item in fields(cls):
            if item.name in ("output", "select"):
                continue
            if item.name.endswith("_regexes"):
                values[item.name] = _texts(item.name, words.get(item.name) or ())
            else:
                values[item.name] = words.get(item.name, item.default)
            if type(item.default) is int:
                _check_number(item.name, values[item.name])
        values["select"] = frozenset(_texts("select", words.get("select") or ()))
        dump, output = words.get("dump_to_file"), words.get("output") or ""
        if not isinstance(output, str):
            raise OptionError(f"output takes text, not {output!r}", f"Valid types: {','.join(OUTPUTS)}")
        values["output"] = Output.parse(f"file:outfile={dump}" if dump else output)
        return cls(**values)

    @classmethod
    def from_proto(cls, proto: OptionsProto) -> Options:
        """Converts the message; proto3 cannot distinguish 0 from absent, so every field counts as given."""
        words = {descriptor.name: getattr(proto, descriptor.name) for descriptor in proto.DESCRIPTOR.fields}
        return cls.from_words(words)

    def replace(self, **changes: Any) -> Options:
        """A copy with some fields changed."""
        return Options(**{**{item.name: getattr(self, item.name) for item in fields(self)}, **changes})

    def __str__(self) -> str:
        """The listing that precedes a report on stdout."""
        return "".join(f"{'-' + name:<28}{_shown(value)}\n" for name, value in self.items())

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, value) of every option, in listing order."""
        return ((item.name, getattr(self, item.name)) for item in fields(self))


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)):
        raise OptionError(f"{name} takes a list of texts, not one", f"Write [{value!r}]")
    texts = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(each, str) for each in texts):
        raise OptionError(f"{name} takes a list of texts, not {value!r}")
    return texts


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise OptionError(f"{name} takes a number, not {value!r}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class Filters:
    """The filters of the options, with their regular expressions compiled."""

    def __init__(self, options: Options, *, is_logged: bool = True) -> None:
        """Compile the expressions; log the invalid ones, unless the caller reports them."""
        self._options = options
        self.account = Patterns(options.account_type_regexes, is_logged=is_logged)
        self.start = Patterns(options.start_name_regexes, is_logged=is_logged)
        self.trim = Patterns(options.trim_name_regexes, is_logged=is_logged)
        self.show = Patterns(options.show_name_regexes, is_logged=is_logged)
        self.hide = Patterns(options.hide_name_regexes, is_logged=is_logged)

    @property
    def broken(self) -> list[str]:
        """The invalid expressions, with the reason."""
        every = (self.account, self.start, self.trim, self.show, self.hide)
        return [text for patterns in every for text in patterns.broken]

    def shows(self, name: str, total: Stats, depth: int) -> bool:
        """Whether a name with these totals is displayed at this depth, by the rules that all views share."""
        options = self._options
        return (
            total.requested_bytes >= options.min_bytes
            and total.peak_bytes >= options.min_peak_bytes
            and total.residual_bytes >= options.min_residual_bytes
            and total.output_bytes >= options.min_output_bytes
            and total.exec_micros >= options.min_micros
            and total.accelerator_exec_micros >= options.min_accelerator_micros
            and total.cpu_exec_micros >= options.min_cpu_micros
            and depth <= options.max_depth
            and self.show.match(name)
            and not self.hide.match(name)
        )
