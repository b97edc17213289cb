"""Loads traces: StepStats and RunMetadata, recordings, Chrome traces and files of other tools.

>>> import collector
>>> step = collector.load("step.pb")  # doctest: +SKIP
>>> step.step_stats, step.recording, step.kind, step.skipped  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.files.atomic_files import expanded
from collector.formats.file_content import content_of
from collector.formats.registry import check_head, format_of, readable, readable_sentence, refuse_foreign
from collector.formats.step import MessageSource, Step

if TYPE_CHECKING:
    import os

    from collector.formats.file_content import FileContent


def load(path: str | os.PathLike[str]) -> Step:
    """Read one trace, whose format is recognised by its content, not by its name. Gzip is decompressed.

    Of a damaged file the intact part is read, and `Step.skipped` and `Step.warning` state the missing part.
    Times are those of the file: a Chrome trace without a stated base may have any origin. Columns and messages are
    computed when they are first requested.

    Raises:
        collector.InvalidFileError: the file is missing, is not a trace, or nothing in it can be read. The message is
            one line that names the file and the place.
    """
    content = content_of(expanded(path), check_head, readable_sentence())
    refuse_foreign(content.head, content.name)
    if content.is_blank:
        return _empty(content)
    read = format_of(content).read
    assert read is not None
    return read(content)


def _empty(content: FileContent) -> Step:
    """The step of an empty file: a message without fields has no bytes, and TensorFlow writes such files."""
    if content.data or not any(each.empty_is_a_step and content.suffix in each.suffixes for each in readable()):
        reasons = "".join(f" ({reason}: {count})" for reason, count in content.skipped.items())
        raise InvalidFileError(f"{content.name}: the file is empty{reasons}")
    from collector.protos import RunMetadata

    return Step(MessageSource(RunMetadata()), kind="StepStats", path=content.name, skipped=content.skipped)
