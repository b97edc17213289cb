"""Times and sizes as text."""

from __future__ import annotations

import argparse

import pytest

from collector.cli._time_arguments import time_argument, time_window
from collector.testing.plugin.limits import parse_value
from collector.text.quantities import TIME_UNITS, number_and_unit, size_text, time_text


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12.5us", (12.5, "us")),
        (" 16 MiB ", (16.0, "MiB")),
        ("-.5 s", (-0.5, "s")),
        ("3", (3.0, "")),
        ("us", None),
        ("1e3 us", None),
        ("9" * 400 + "s", None),
        ("", None),
    ],
)
def test_quantities_as_users_write_them(text, found):
    assert number_and_unit(text) == found


@pytest.mark.parametrize("unit", TIME_UNITS)
def test_times_are_written_alike_in_commands_and_limits(unit):
    text = f"12.5 {unit}"
    assert time_argument(text) == parse_value("device_time", text, "time") == round(12.5 * TIME_UNITS[unit])


def test_nothing_is_a_time_without_a_unit():
    assert time_argument("0") == time_argument("0.0") == time_argument("0ms") == 0
    assert time_window("0..20us") == (0, 20_000)


@pytest.mark.parametrize("text", ["", "12", "us", "-1us", "1 day", "9" * 400 + "s"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time"):
        time_argument(text)
