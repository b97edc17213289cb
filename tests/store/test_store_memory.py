"""The memory of decoded rows, during a traced step and after it."""

from __future__ import annotations

import pytest
from programs import results_of

SCRIPT = "store_memory.py"
MIB = 1 << 20


@pytest.mark.medium
def test_a_stream_with_a_handful_of_rows_costs_little():
    measured = results_of(SCRIPT, "many_streams")
    assert measured["rows"] == 2_000
    assert measured["peak"] < 100 * MIB  # room for 4,096 rows of each stream was 625 MiB


@pytest.mark.slow
def test_streams_of_past_sessions_cost_nothing():
    measured = results_of(SCRIPT, "new_streams")
    assert measured["last"] - measured["first"] < 60 * MIB  # room for 4,096 rows of each stream was 560 MiB


@pytest.mark.medium
def test_rows_and_columns_are_never_there_as_a_whole_both():
    measured = results_of(SCRIPT, "hand_over")
    # Rows are about as large as columns.
    assert measured["peak"] - measured["copy_of_the_buffer"] < 1.5 * measured["columns"]


@pytest.mark.medium
def test_tables_come_in_the_order_of_a_recording():
    # To bring one into order later is to have it twice meanwhile.
    assert results_of(SCRIPT, "order") == {"kernels": 0, "api_calls": 0}


@pytest.mark.slow
def test_a_large_step_leaves_no_memory_behind():
    measured = results_of(SCRIPT, "large_step")
    assert measured["with_it"] - measured["after"] > 60 * MIB
    assert measured["after"] - measured["before"] < 10 * MIB
