"""Errors of questions that a profile cannot answer."""

from __future__ import annotations

from collector.errors import CollectorError


class ProfilerError(CollectorError):
    """Base of the profiler's own errors."""


class OptionError(ProfilerError):
    """An option has no such value; the cause names both."""


class MissingStepError(ProfilerError):
    """The profile holds no such step; the remedy lists those it has."""


class MissingTracesError(ProfilerError):
    """The code view was asked for, and the places where nodes were created are not known."""


class ViewError(ProfilerError):
    """The view has no form for that output."""
