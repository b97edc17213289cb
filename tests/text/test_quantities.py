"""Times and sizes as text."""

from __future__ import annotations

import pytest

from collector.text.quantities import size_text, time_text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (0.6, "1 ns"),
        (1_000, "1 µs"),
        (12_345, "12.35 µs"),
        (123_456, "123.5 µs"),
        (999_999, "1000 µs"),
        (1_000_000, "1 ms"),
        (2_500_000_000, "2.5 s"),
        (12_345_678_901_234, "12,346 s"),
    ],
)
def test_times(nanoseconds, text):
    assert time_text(nanoseconds) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (4096, "4.096 kB"),
        (1 << 20, "1.049 MB"),
        (25_000_000_000, "25 GB"),
        (10**15, "1,000 TB"),
    ],
)
def test_sizes(num_bytes, text):
    assert size_text(num_bytes) == text
