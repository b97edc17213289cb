"""Activity from the package's own CUPTI subscriber, the C++ extension."""

from __future__ import annotations

import functools
import json
import os
import site
import sys
from typing import TYPE_CHECKING, Any

from collector.errors import CuptiUnusableError, NotTracedError, error_of_kind
from collector.files.path_kinds import is_folder
from collector.recording.capture import Instant
from collector.runtime.interpreters import is_main_interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector._native import _StartOptions
    from collector.options import TraceOptions
    from collector.recording.annotation_details import Details
    from collector.recording.capture import Capture


@functools.cache
def extension_error() -> ImportError | None:
    """The error of importing the C++ extension, or None if it can be imported."""
    if not is_main_interpreter():
        return ImportError("it works only in the main interpreter of a process")
    try:
        from collector import _native  # noqa: F401 (whether it can be imported is the question)
    except ImportError as error:
        return error
    return None


def search_roots() -> list[str]:
    """Folders that contain NVIDIA's wheels, in the order of their discovery."""
    entries = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    folders = dict.fromkeys(each for each in entries if each and isinstance(each, str))  # imports ignore others, too
    return [folder for folder in folders if is_folder(f"{folder}/nvidia")]


def cupti_candidates() -> list[str]:
    """The files among which a search for libcupti chooses, best first; the loader's path is not searched.

    Raises:
        ImportError: the native extension cannot be imported.
    """
    from collector import _native

    return _native.cupti_candidates(search_roots())


class NativeSource:
    """The process's one native subscription, behind the `collector.sources.Source` protocol."""

    name = "native"
    keeps_budget = True
    """Whether it can leave out kinds while it records."""

    def __init__(self) -> None:
        """Raise `collector.CuptiUnusableError` if the extension cannot be loaded."""
        error = extension_error()
        if error is not None:
            raise CuptiUnusableError(
                f"the native extension cannot be loaded ({error})",
                "Install the package again with a C++ compiler, or use source='cupti-python'",
            ) from error
        from collector import _native

        self._native = _native
        self.push_annotation = _native.push_annotation
        self.pop_annotation = _native.pop_annotation
        self.annotation_calls = _native.annotation_calls()
        self._keeps_journal = False

    def probe(self) -> dict[str, Any]:
        """See `collector.sources.Source.probe`."""
        return self._native.probe(search_roots=search_roots())

    def start(self, options: TraceOptions) -> None:
        """Subscribe and enable the kinds of ``options``, or raise the matching `collector.CollectorError`."""
        self._subscribe(
            options,
            {
                "kinds": list(options.kinds),
                # Absolute, because the program may change its folder; as bytes, because the name may be in any
                # encoding.
                "journal": b"" if options.journal is None else os.fsencode(options.journal.absolute()),
                "journal_only": options.stream,
                "segment_bytes": options.segment_bytes if options.stream else 0,
                "texts": _texts_of(options),
            },
        )
        self._keeps_journal = options.journal is not None

    def _subscribe(self, options: TraceOptions, others: _StartOptions) -> None:
        """Start with ``options``, except for the journal and the kinds, which are among the ``others``."""
        wanted = options.nvtx
        domains: _StartOptions = {} if wanted is None or wanted is True else {"nvtx_domains": wanted or ()}
        try:
            self._native.start(
                {
                    "libcupti": "",
                    "libcuda": "",
                    "search_roots": search_roots(),
                    "buffer_bytes": options.buffer_bytes,
                    "max_buffers": options.max_buffers,
                    "share_subscription": options.share_subscription,
                    "budget_millionths": options.budget_millionths,
                    "budget_period_ms": options.budget_period_ms,
                    **domains,
                    **others,
                }
            )
        except self._native.CaptureError as error:
            raise error_of_kind(error.kind, error.cause, error.remedy) from None

    def note_details(self, details: Details) -> None:
        """Store the details of annotations, in the order of their numbers; a journal gets them at once."""
        if self._keeps_journal:
            self._native.note_details(json.dumps(details))

    def note_facts(self, texts: Mapping[str, str], counters: Mapping[str, int]) -> None:
        """State facts in the journal of the open session."""
        self._native.note_facts(
            {
                name.encode(errors="replace").decode(): text.encode(errors="replace").decode()
                for name, text in texts.items()
            },
            counters,
        )

    def journal_trouble(self) -> str:
        """The error of the journal of the current or last session; ``""`` if there is none."""
        return self._native.journal_trouble()

    def remove_journal(self) -> None:
        """Delete the journal of the session that has ended."""
        self._native.remove_journal()

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """Flush, disable, unsubscribe, and return the columns."""
        try:
            capture = self._native.stop(synchronize, timeout_ms)
        except self._native.CaptureError as error:
            raise error_of_kind(error.kind, error.cause, error.remedy) from None
        if capture is None:
            raise NotTracedError("the native session had ended already")
        return capture

    def instant(self) -> Instant | None:
        """The present instant of the open session; None if there is none."""
        found = self._native.instant()
        return None if found is None else Instant(*found)

    def is_idle(self) -> bool:
        """Whether CUPTI has not requested a buffer since the start, i.e. nothing was recorded."""
        return self._native.is_idle()

    def abort(self) -> None:
        """Stop without results."""
        self._native.abort()


def _texts_of(options: TraceOptions) -> dict[str, str]:
    """The texts that a journal holds from its begin on, so that they are known even if the program is killed."""
    if options.journal is None or not options.device_prefix:
        return {}
    from collector.recording.journal_facts import DEVICE_PREFIX

    return {DEVICE_PREFIX: options.device_prefix}
