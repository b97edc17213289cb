"""What can go wrong, each with its cause and its remedy."""

from __future__ import annotations


class CollectorError(Exception):
    """Base of every error this package raises on purpose.

    ``str(error)`` is one line: the cause, then the remedy.
    """

    def __init__(self, cause: str, remedy: str = "") -> None:
        self.cause = cause
        """What is wrong, without a full stop."""
        self.remedy = remedy
        """What to do about it, or ``""``."""
        super().__init__(f"{cause}. {remedy}" if remedy else cause)


class UnavailableError(CollectorError):
    """GPU activity cannot be traced in this process."""


class DriverNotFoundError(UnavailableError):
    """No NVIDIA driver (``libcuda.so.1``), or only the toolkit's stub of it."""


class CuptiNotFoundError(UnavailableError):
    """No libcupti was found, or the one found cannot be loaded."""


class CuptiUnusableError(UnavailableError):
    """The libcupti found must not be called here (for example 13.2 with an older driver)."""


class PermissionDeniedError(UnavailableError):
    """The driver refuses activity tracing to this user or on this device."""


class SubscriberConflictError(UnavailableError):
    """Another CUPTI client holds this process's one subscription."""


class CuptiCallError(UnavailableError):
    """A CUPTI call failed for another reason; the cause names call, code and CUPTI's text."""


class SessionActiveError(CollectorError):
    """A session is already open: one process can hold one."""


class InvalidFileError(CollectorError):
    """A file is not what its name or its reader says it is."""


class CollectorWarning(UserWarning):
    """Category of every warning this package gives."""
