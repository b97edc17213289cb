"""The names of the markers and fixtures that make a test a GPU test."""

from __future__ import annotations

MARKER_NAMES = frozenset(("gpu", "gpu_limits", "gpu_leaks", "gpu_untraced"))
_WIDER_SCOPES = ("class", "module", "package", "session")
SIMULATED_FIXTURES = frozenset(("simulated_gpu", *(f"{scope}_simulated_gpu" for scope in _WIDER_SCOPES)))
FIXTURE_NAMES = SIMULATED_FIXTURES | {"gpu_trace", "gpu_devices"}
"""Fixtures that make a test a GPU test even without a marker."""
