"""The annotations of a Python program that `collector run` records: they need no session to name its launches."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from collector.runtime.extension import INJECTION_VARIABLE, is_capture_library
from collector.sources.native import NativeSource, extension_error
from collector.tracing.annotate import send_annotations_to

if TYPE_CHECKING:
    from collector.recording.annotation_details import Details


class _RecordedProcess(NativeSource):
    """The native source without a session of its own: that of the library in the process is open, or will be."""

    def note_details(self, details: Details) -> None:
        """Store the details of an annotation; those from before CUDA's initialisation, too."""
        self._native.note_run_details(json.dumps(details))


def send_annotations_to_run() -> None:
    """Pass annotations to the recording of `collector run`, if that records this process."""
    if is_capture_library(os.environ.get(INJECTION_VARIABLE, "")) and extension_error() is None:
        send_annotations_to(_RecordedProcess())
