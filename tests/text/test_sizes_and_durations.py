"""Sizes and durations as people write them."""

from __future__ import annotations

import pytest

from collector.text.quantities import bytes_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("500ms", 0.5), (" 1.5 min ", 90), ("2m", 120), ("1h", 3600), ("3 sec", 3), ("0s", 0)],
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 days", "1e3s", "5s 3ms", "5S"])
def test_texts_that_are_not_durations(text):
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "size"), [("512MB", 512_000_000), ("1.5 GiB", 3 << 29), ("4096", 4096), ("1kb", 1000), ("1 kib", 1024)]
)
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "5 XB", "1e3"])
def test_texts_that_are_not_sizes(text):
    with pytest.raises(ValueError, match="is not a size"):
        bytes_of(text)
