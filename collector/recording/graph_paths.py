"""The path of an activity of a CUDA graph: that of the graph's launch, and that of the capture of its node."""

from __future__ import annotations

CAPTURED_AT = "<captured_at>"
"""The separator of the two paths; Proton writes the same."""


def path_with_capture(launched: str, captured: str) -> str:
    """The path for both annotations, either of which may be missing.

    >>> path_with_capture("step", "model/conv"), path_with_capture("", "model"), path_with_capture("step", "")
    ('step/<captured_at>/model/conv', '<captured_at>/model', 'step')
    """
    if not captured:
        return launched
    return f"{launched}/{CAPTURED_AT}/{captured}" if launched else f"{CAPTURED_AT}/{captured}"


def split_at_capture(path: str) -> tuple[str, str]:
    """The inverse of `path_with_capture`.

    >>> split_at_capture("step/<captured_at>/model/conv"), split_at_capture("<captured_at>/model")
    (('step', 'model/conv'), ('', 'model'))
    """
    launched, _, captured = f"/{path}".partition(f"/{CAPTURED_AT}/")
    return launched[1:], captured
