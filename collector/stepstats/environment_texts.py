"""Conversion of a recording's environment to texts, which messages and traces hold, and back to its types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def environment_texts(environment: Mapping[str, object]) -> dict[str, str]:
    """Each value as text: a text as it is, and anything else as JSON."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        for key, value in environment.items()
    }


def json_keys(environment: Mapping[str, object]) -> list[str]:
    """The keys whose values are not texts."""
    return sorted(key for key, value in environment.items() if not isinstance(value, str))


def environment_of(texts: Mapping[str, str], as_json: Collection[str]) -> dict[str, Any]:
    """The inverse of `environment_texts`; ``as_json`` is the result of `json_keys`. Invalid JSON stays text."""
    return {key: _value(text) if key in as_json else text for key, text in texts.items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
