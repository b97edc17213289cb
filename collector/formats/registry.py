"""The registry of trace file formats, one module each: recognition, reader, writer and names.

To add a format that is read, or written from columns or StepStats: one module in this package with a
`collector.formats.file_format.Format` called ``FORMAT``, and its name in `_MODULES`. A format that is drawn slice by
slice needs no module here: it is a TraceWriter in ``native/write`` and a line in `collector.timeline.drawn_files`.

Modules of formats are imported with this one, so they import readers and writers only when these are used. An import on
demand could be interrupted by a signal handler or a finalizer that traces, which would find a format without content.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from collector.errors import InvalidFileError, UnknownFormatError
from collector.files.atomic_files import expanded
from collector.formats.file_content import begins_as_json, first_letter
from collector.formats.file_format import Format, Writable
from collector.formats.foreign_files import foreign_kind, recipe_kind, report_kind
from collector.formats.step import Step, TracedStep
from collector.formats.step_sources import RecordingSource
from collector.text.wording import listed
from collector.timeline.drawn_files import DRAWN_FILES, DrawnFile

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.recording.recording import Recording

_MODULES = (
    "stepstats_format",
    "stepstats_text_format",
    "gpurec_format",
    "journal_format",
    "nsys_format",
    "proton_format",
    "collector_timeline_format",
    "tensorflow_timeline_format",
    "xprof_trace_format",
    "proton_timeline_format",
    "profiler_timeline_format",
    "xspace_format",
    "report_format",
)
"""In the order in which texts list them, and in which a file is tested for them; drawn files come before them."""


def formats() -> tuple[Format, ...]:
    """All formats: drawn files, then those of `_MODULES`."""
    return _FORMATS


def _of_drawn(drawn: DrawnFile) -> Format:
    def draw(step: Writable, path: Path) -> None:
        from collector.timeline import chrome_trace

        chrome_trace(step, path)

    return Format(
        name=drawn.name,
        family=drawn.family,
        suffixes=drawn.suffixes,
        begins=drawn.recognise,
        write=draw,
        drawn=drawn,
    )


_FORMATS = (
    *(_of_drawn(each) for each in DRAWN_FILES),
    *(importlib.import_module(f"collector.formats.{each}").FORMAT for each in _MODULES),
)


# --- reading


def readable() -> tuple[Format, ...]:
    """The formats that can be read."""
    return tuple(each for each in formats() if each.read is not None)


def format_of(content: FileContent) -> Format:
    """The format of a file's content.

    Raises:
        collector.InvalidFileError: the format can be written, but not read back.
    """
    for each in _possible(content.head) or _possible(content.data):
        if each.sniff is None or each.sniff(content):
            return each
    _refuse_written(content.data, content.name)
    return _without_signature()


def likely_format(head: bytes, name: Path) -> str:
    """The name of the only format that begins with these bytes, or the family of the first of several.

    Raises:
        collector.InvalidFileError: a file that begins so can be written but not be read back.
    """
    possible = _possible(head)
    if not possible:
        _refuse_written(head, name)
        possible = [_without_signature()]
    return possible[0].name if len(possible) == 1 else possible[0].family


def is_likely(content: FileContent) -> bool:
    """Whether a file is probably readable, judged by its first bytes or, without a signature, by suffix and content.

    A trace that is cut off or damaged behind its beginning is.
    """
    possible = _possible(content.head)
    if not possible and content.suffix in readable_suffixes():
        possible = [_without_signature()]
    return any(each.is_likely is None or each.is_likely(content) for each in possible)


def _possible(head: bytes) -> list[Format]:
    """The formats that begin with these bytes; those of JSON last, because an XSpace may begin so as well."""
    possible = [each for each in readable() if each.begins is not None and each.begins(head)]
    return sorted(possible, key=lambda each: each.begins is begins_as_json)


def _without_signature() -> Format:
    return next(each for each in readable() if each.begins is None)


def check_head(head: bytes, name: Path, num_bytes: int) -> None:
    """Refuse a file whose first bytes are those of no readable format, before all of it is read.

    Raises:
        collector.InvalidFileError: the file is refused.
    """
    refuse_foreign(head, name)
    possible = _possible(head)
    if not possible:
        _refuse_written(head, name)
    if not first_letter(head):
        return
    possible = possible or [_without_signature()]
    for each in possible:
        why = each.check_head(head) if each.check_head is not None else ""
        if why:
            raise InvalidFileError(f"{name}: {why}", readable_sentence())
    if all(num_bytes > each.max_bytes for each in possible):
        raise InvalidFileError(f"{name}: larger than {possible[0].limit}")


def refuse_foreign(head: bytes, name: Path) -> None:
    """Refuse a file of a known kind that is not a trace, with the kind and a remedy.

    Raises:
        collector.InvalidFileError: the file is refused.
    """
    what, remedy = recipe_kind(head, name)
    if not what:
        what, remedy = foreign_kind(head)
    if not what and not _possible(head):
        what, remedy = report_kind(name.name)
    if what:
        raise InvalidFileError(f"{name}: this is {what}, not a trace", remedy or readable_sentence())


def _refuse_written(head: bytes, name: Path) -> None:
    for each in formats():
        if each.read is None and each.begins is not None and each.begins(head):
            article = "an" if each.name[0] in "AEIOUX" else "a"
            raise InvalidFileError(
                f"{name}: this is {article} {each.name}, which cannot be read back",
                "Give the file from which it was made, or write .json or .pb, which can be read back",
            )


def readable_sentence() -> str:
    """The formats that can be read, for an error's remedy."""
    return f"Readable are {readable_list()}, also gzipped"


def readable_list(*, with_origins: bool = False) -> str:
    """The families of what can be read with their suffixes: ``recordings (.gpurec), journals and …``."""
    families: dict[str, list[Format]] = {}
    for each in readable():
        families.setdefault(each.family, []).append(each)
    parts = []
    for family, members in families.items():
        suffixes = ", ".join(_unpacked_suffixes(members))
        origins = [each.origin for each in members if each.origin and with_origins]
        parts.append(family + (f" ({suffixes})" if suffixes else "") + (f" of {listed(origins)}" if origins else ""))
    return listed(parts)


def readable_suffixes() -> tuple[str, ...]:
    """The suffixes that readable files have, as they are without gzip."""
    return tuple(_unpacked_suffixes(readable()))


def _unpacked_suffixes(members: Iterable[Format]) -> dict[str, None]:
    return dict.fromkeys(suffix for each in members for suffix in each.suffixes if not suffix.endswith(".gz"))


# --- writing


def written_suffixes() -> dict[str, Format]:
    """Suffix -> the format that is written to a file with it."""
    return {suffix: each for each in formats() if each.write is not None for suffix in each.suffixes}


def suffix_of(name: str) -> str:
    """The longest suffix of a written format that a file's name ends with, in lower case; ``""`` without any."""
    name = name.lower()
    fitting = [suffix for suffix in written_suffixes() if name.endswith(suffix) and len(name) > len(suffix)]
    return max(fitting, key=len, default="")


def written_format(path: Path) -> Format:
    """The format of ``path``'s suffix.

    Raises:
        collector.UnknownFormatError: no format has that suffix.
    """
    suffix = suffix_of(path.name)
    if suffix:
        return written_suffixes()[suffix]
    raise UnknownFormatError(f"{path}: no format has this suffix", f"Use one of {', '.join(written_suffixes())}")


def output_of(path: Path) -> Callable[[Writable, Path], None]:
    """Return the function that writes a step to a file with ``path``'s suffix, completely or not at all.

    Raises:
        collector.UnknownFormatError: no format has that suffix.
    """
    write = written_format(path).write
    assert write is not None
    return write


def save_in_format(given: Recording | TracedStep, path: str | os.PathLike[str]) -> None:
    """Write a recording or a step to ``path`` in the format of its suffix; see `collector.Recording.save`."""
    step = given if isinstance(given, TracedStep) else Step(RecordingSource(given))
    target = expanded(path)
    output_of(target)(step, target)


def merged_format(path: Path) -> Format:
    """The format for several steps with ``path``'s suffix.

    Raises:
        collector.UnknownFormatError: no format that takes several steps has that suffix.
    """
    known = merged_suffixes()
    suffix = suffix_of(path.name)
    if suffix not in known:
        raise UnknownFormatError(f"{path}: no format for several steps has this suffix", f"Use {_either(known)}")
    return known[suffix]


def merged_suffixes() -> dict[str, Format]:
    """Suffix -> the format that takes several steps."""
    return {suffix: each for suffix, each in written_suffixes().items() if each.takes_many_steps}


def suffixes_help(suffixes: Mapping[str, Format]) -> str:
    """Suffixes with the purpose of each, as a command's help lists them."""
    by_format: dict[str, tuple[Format, list[str]]] = {}
    for suffix, each in suffixes.items():
        by_format.setdefault(each.name, (each, []))[1].append(suffix)
    parts = []
    for each, own in by_format.values():
        plain = [suffix for suffix in own if not suffix.endswith(".gz")]
        gz = " (also with .gz)" if len(plain) < len(own) else ""
        parts.append(_either(plain) + gz + (f" ({each.use})" if each.use else ""))
    return _either(parts)


def _either(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} or {last}" if first else last
