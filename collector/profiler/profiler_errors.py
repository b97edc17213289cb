"""Errors of questions to a profile."""

from __future__ import annotations

from collector.errors import CollectorError


class ProfilerError(CollectorError):
    """Base of the profiler's own errors."""


class OptionError(ProfilerError):
    """An option has an invalid value; the cause names both."""


class MissingStepError(ProfilerError):
    """The profile does not contain the step; the remedy lists its steps."""


class MissingTracesError(ProfilerError):
    """The code view was requested, but the places where nodes were created are unknown."""


class ViewError(ProfilerError):
    """The view does not support the output."""
