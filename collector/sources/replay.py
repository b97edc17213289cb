"""Activity that was recorded before: a recording handed over as if it happened now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.options import TraceOptions
    from collector.recording.capture import Capture
    from collector.recording.recording import Recording


class ReplaySource:
    """Every session on this source yields ``recording`` again, with the times it was recorded with.

    For trying out what follows a trace (files, reports, limits) without a GPU:

    >>> with collector.trace("again.json", source=ReplaySource(Recording.load("step.gpurec"))):
    ...     pass
    """

    name = "replay"

    def __init__(self, recording: Recording) -> None:
        """Replay ``recording``; it is not changed."""
        self._recording = recording

    def probe(self) -> dict[str, Any]:
        """The properties of the machine where the recording was made."""
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
        """Annotations of the replaying program are not part of what was recorded."""

    def pop_annotation(self) -> None:
        """See `push_annotation`."""
