"""The description of a file format for the registry; see `collector.formats.registry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.files.unpacking import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import BinaryIO

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step
    from collector.protos import RunMetadata
    from collector.recording.recording import Recording
    from collector.recording.step_origin import StepOrigin
    from collector.stepstats.object_tables import ObjectRow
    from collector.timeline.drawn_files import DrawnFile
    from collector.timeline.op_arguments import OpDetails


class Writable(Protocol):
    """The properties of a step that a format may use to write it."""

    @property
    def is_recording(self) -> bool:
        """Whether the step is made of a recording, and its StepStats of that."""
        ...

    @property
    def recording(self) -> Recording:
        """The step as columns."""
        ...

    @property
    def origin(self) -> StepOrigin:
        """The rank of the step and the missing parts of its file."""
        ...

    @property
    def common_prefix(self) -> str:
        """The prefix of the names of all its devices."""
        ...

    @property
    def run_metadata(self) -> RunMetadata:
        """The step as StepStats with its provenance."""
        ...

    def serialized(self) -> bytes:
        """``run_metadata`` in protobuf's wire format."""
        ...


class StepsWriter(Protocol):
    """Writes several steps into one file, one after the other."""

    def add(
        self,
        message: bytes,
        *,
        is_run_metadata: bool,
        number: int,
        shift_ns: int,
        owner: str,
        run: str,
        together: bool,
        objects: Mapping[str, Sequence[ObjectRow]] | None,
        texts: Sequence[str],
        details: OpDetails,
    ) -> tuple[int, int]:
        """Add a step; see `collector.formats.xspace.XSpaceWriter.add`."""
        ...

    def warn(self, warning: str) -> None:
        """Add a warning to the file."""
        ...

    def write(self, file: BinaryIO, about: str) -> None:
        """Write all of it; `about` is the metadata of the file."""
        ...


@dataclass(frozen=True)
class Format:
    """A format of files."""

    name: str
    """The noun for one file, such as "recording". `Step.kind`, unless the reader is more precise."""
    family: str
    """The plural for this and similar formats, such as "Chrome traces"."""
    suffixes: tuple[str, ...] = ()
    """The suffixes of files of this format, in lower case."""
    origin: str = ""
    """The program whose files are read: TensorFlow."""
    use: str = ""
    """The programs that open a written file: XProf and TensorBoard."""
    begins: Callable[[bytes], bool] | None = None
    """Whether these first bytes, unpacked, may be those of such a file; None for the one format that has no signature,
    which takes every file that no other does."""
    sniff: Callable[[FileContent], bool] | None = None
    """Whether a file that begins so is such a file; None: every one is."""
    is_likely: Callable[[FileContent], bool] | None = None
    """Whether a file of a folder that begins so is probably a trace, found out in much less time than it takes to read
    it; None: every one is."""
    read: Callable[[FileContent], Step] | None = None
    """The step in such a file. Raises `collector.InvalidFileError` where nothing in it can be read."""
    check_head: Callable[[bytes], str] | None = None
    """Returns the reason for refusing a large file with these first bytes; ``""`` if it is accepted."""
    max_bytes: int = MAX_BYTES
    """The largest file that is read."""
    limit: str = f"{MAX_BYTES >> 30} GiB"
    """`max_bytes` in words, with their reason."""
    write: Callable[[Writable, Path], None] | None = None
    """Writes a step, whole or not at all."""
    drawn: DrawnFile | None = None
    """The native writer of a format that is drawn slice by slice."""
    steps_writer: Callable[[int], AbstractContextManager[StepsWriter]] | None = None
    """Opens a writer of several steps to one file; the argument is the wall time of the first start, ns."""

    @property
    def takes_many_steps(self) -> bool:
        """Whether several steps can be written to one file."""
        return self.drawn is not None or self.steps_writer is not None
