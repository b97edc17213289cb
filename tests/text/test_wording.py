"""Counts in sentences."""

from __future__ import annotations

import pytest

from collector.recording.ledger import LOSSES, Ledger
from collector.text.wording import counted


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        ("{} record[|s]", 0, "0 records"),
        ("{} record[|s]", 1, "1 record"),
        ("{:,} cop[y|ies] [is|are] small", 1, "1 copy is small"),
        ("{:,} cop[y|ies] [is|are] small", 12345, "12,345 copies are small"),
        ("gpu[0] has {}", 1, "gpu[0] has 1"),
    ],
)
def test_a_sentence_goes_with_its_count(text, count, message):
    assert counted(text, count) == message


@pytest.mark.parametrize("figure", LOSSES)
def test_one_loss_is_reported_in_the_singular(figure):
    one, many = (Ledger.from_dict({figure: count}).losses()[0] for count in (1, 1234))
    assert "|" not in one + many
    assert ("1234" in many) == ("{}" in LOSSES[figure])
    assert not any(f"1 {noun}s " in one for noun in ("record", "buffer", "byte", "table", "kernel", "time"))
