"""Replay of a recording as if its activities happened now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.options import TraceOptions
    from collector.recording.capture import Capture
    from collector.recording.recording import Recording


class ReplaySource:
    """Every session on this source returns ``recording`` again, with its original times.

    For trying the code that follows a trace (files, reports, limits) without a GPU:

    >>> with collector.trace("again.json", source=ReplaySource(Recording.load("step.gpurec"))):
    ...     pass
    """

    name = "replay"

    def __init__(self, recording: Recording) -> None:
        """Replay ``recording``, which is not changed."""
        self._recording = recording

    def probe(self) -> dict[str, Any]:
        """The properties of the machine that made the recording."""
        return {"available": True, "error": "", "cause": "", "remedy": "", **self._recording.environment}

    def start(self, options: TraceOptions) -> None:
        """Nothing to start."""

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """The recording's capture, marked as replayed."""
        capture = self._recording.to_capture()
        capture["environment"] = {**capture["environment"], "source": self.name}
        return capture

    def abort(self) -> None:
        """Nothing to end."""

    def push_annotation(self, path: str, details: int = 0) -> None:
        """Does nothing: annotations of the replaying program do not belong to the recording."""

    def pop_annotation(self) -> None:
        """See `push_annotation`."""
