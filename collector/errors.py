"""The errors of this package, each with its cause and its remedy."""

from __future__ import annotations

import os


class CollectorError(Exception):
    """Base class of the errors that this package raises on purpose.

    ``str(error)`` is one line: the cause, then the remedy.
    """

    def __init__(self, cause: str, remedy: str = "") -> None:
        self.cause = cause.rstrip(". \n")
        """The cause, without a full stop."""
        self.remedy = remedy
        """The remedy, or ``""``."""
        super().__init__(f"{self.cause}{'' if self.cause.endswith('?') else '.'} {remedy}" if remedy else self.cause)


class UnavailableError(CollectorError):
    """GPU activity cannot be traced in this process."""


class DriverNotFoundError(UnavailableError):
    """No NVIDIA driver (``libcuda.so.1``), or only the toolkit's stub of it."""


class CuptiNotFoundError(UnavailableError):
    """No libcupti was found, or the one found cannot be loaded."""


class CuptiUnusableError(UnavailableError):
    """The libcupti that was found must not be called here (for example 13.2 with an older driver)."""


class PermissionDeniedError(UnavailableError):
    """The driver denies activity tracing to this user or on this device."""


class SubscriberConflictError(UnavailableError):
    """Another CUPTI client holds this process's only subscription."""


class CuptiCallError(UnavailableError):
    """A CUPTI call failed for another reason; the cause names call, code and CUPTI's text."""


class SessionActiveError(CollectorError):
    """A session is already open; a process can have only one."""


class NotTracedError(CollectorError):
    """A session's result was requested before a step was traced, or while the session is still open."""


class InvalidFileError(CollectorError):
    """A file's content does not match its name or its reader."""

    def of_file(self, path: str | os.PathLike[str] | None) -> InvalidFileError:
        """The error with the name of the file, if its cause does not contain it; itself if the name is not known."""
        name = "" if path is None else os.fspath(path)
        return self if name in self.cause else InvalidFileError(f"{name}: {self.cause}", self.remedy)


class UnknownFormatError(CollectorError, ValueError):
    """A file name's suffix belongs to no format that can be written."""


class OutputError(CollectorError):
    """A file cannot be written."""


class MissingDependencyError(CollectorError, ImportError):
    """An optional package is required."""


def in_words(error: Exception) -> str:
    """An error as part of a message; errors that this package does not raise are preceded by their type."""
    return str(error) if isinstance(error, CollectorError) else f"unexpected {type(error).__name__}: {error}"


def not_installed(package: str, extra: str = "") -> tuple[str, str]:
    """Cause and remedy of the error that an optional package is not installed.

    Args:
        package: the package's name on PyPI.
        extra: the extra of cupti-collector that contains it; ``""``: users install the package by its own name.
    """
    wanted = f"'cupti-collector[{extra}]'" if extra else package
    return f"{package} is not installed", f"Run: pip install {wanted}"


class CollectorWarning(UserWarning):
    """Category of every warning this package gives."""


_OF_KIND: dict[str, type[CollectorError]] = {
    "driver-not-found": DriverNotFoundError,
    "cupti-not-found": CuptiNotFoundError,
    "cupti-unusable": CuptiUnusableError,
    "permission-denied": PermissionDeniedError,
    "subscriber-conflict": SubscriberConflictError,
    "cupti-call": CuptiCallError,
    "already-active": SessionActiveError,
    "not-listening": CollectorError,
}
"""The native ``CaptureError.kind`` -> the Python class."""


def error_of_kind(kind: str, cause: str, remedy: str = "") -> CollectorError:
    """Return the error for a native ``CaptureError``; an unknown kind becomes `UnavailableError`."""
    return _OF_KIND.get(kind, UnavailableError)(cause, remedy)
