"""Read back what was traced: StepStats and RunMetadata, our recordings, Chrome traces.

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
    """Read one trace; the content decides what it is, not the name. Gzip is unpacked.

    A file that is damaged gives what is whole of it, with `Step.skipped` and `Step.warning` saying what is missing.
    Times are kept as the file has them: a Chrome trace that states no base may count from anything. Columns and
    messages are made when they are asked for.

    Raises:
        collector.InvalidFileError: the file is not there, is something else, or nothing in it can be read. One line
            that names the file and the place.
    """
    content = content_of(expanded(path), check_head, readable_sentence())
    refuse_foreign(content.head, content.name)
    if content.is_blank:
        return _empty(content)
    read = format_of(content).read
    assert read is not None
    return read(content)


def _empty(content: FileContent) -> Step:
    """A message without fields has no byte; TensorFlow may have written such a file."""
    if content.data or not any(each.empty_is_a_step and content.suffix in each.suffixes for each in readable()):
        reasons = "".join(f" ({reason}: {count})" for reason, count in content.skipped.items())
        raise InvalidFileError(f"{content.name}: the file is empty{reasons}")
    from collector.protos import RunMetadata

    return Step(MessageSource(RunMetadata()), kind="StepStats", path=content.name, skipped=content.skipped)
