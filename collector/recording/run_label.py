"""The label of a run and the git revision of its program, which a recording holds on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from collector.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.recording.recording import Recording

_LABEL, _REVISION = "label", "git_revision"
"""Keys of a recording's environment."""


class RunLabel(NamedTuple):
    """Texts that lists of runs show; ``""``: not recorded."""

    label: str = ""
    git_revision: str = ""

    @classmethod
    def of(cls, recording: Recording) -> RunLabel:
        """The label and revision in a recording."""
        return cls(*(str(recording.environment.get(key, "")) for key in (_LABEL, _REVISION)))

    def as_environment(self) -> Mapping[str, str]:
        """The entries of a recording's environment."""
        return {key: without_surrogates(text) for key, text in zip((_LABEL, _REVISION), self, strict=True) if text}
