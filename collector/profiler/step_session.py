"""The sessions that trace steps of a running program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import TracebackType

    from collector.protos import RunMetadata
    from collector.recording.recording import Recording


class StepSession(Protocol):
    """The part of a session's interface that the profiler uses."""

    @property
    def unavailable(self) -> str | None:
        """The reason why nothing was traced, or None."""

    @property
    def run_metadata(self) -> RunMetadata:
        """The recorded step."""

    @property
    def recording(self) -> Recording:
        """The recorded step as columns."""

    def __enter__(self) -> Any: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None, /
    ) -> Any: ...


def new_session() -> StepSession:
    """A session of `collector.trace`."""
    from collector.tracing.trace import trace

    return trace()
