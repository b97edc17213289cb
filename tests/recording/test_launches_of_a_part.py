"""What belongs to a part of a session whose call is not known: the order of calls decides, by their correlation ids."""

import numpy as np
import pytest

from collector.recording.journal_window import launches_between

PART_NS = (100, 200)
LAST_ID = 2**32 - 1


def columns(calls):
    ids, starts = zip(*calls, strict=True)
    return {"correlation_id": np.array(ids, np.uint32), "start_ns": np.array(starts, np.int64)}


@pytest.mark.parametrize(
    ("calls", "earlier", "has_own_calls", "ids", "expected"),
    [
        ([(20, 150)], [(10, 50), (9, 40)], False, [9, 10, 11, 20], [11, 20]),
        ([(20, 150), (8, 50)], [], False, [7, 8, 9, 20], [9, 20]),
        ([(20, 150), (8, 50)], [(10, 60)], False, [9, 10, 11, 20], [11, 20]),
        ([(20, 150)], [], False, [19, 20, 21], [20, 21]),
        ([(20, 150)], [(10, 50)], True, [11, 19, 20, 21], [20, 21]),
        ([(3, 150)], [(LAST_ID, 50)], False, [LAST_ID - 1, LAST_ID, 2, 3], [2, 3]),
        ([(20, 150)], [(10, 50)], False, [0, 5], [0]),
        ([(30, 250)], [(10, 50)], True, [11, 30], []),
    ],
    ids=[
        "calls in the journal before",
        "calls of the part's own files",
        "both",
        "no call before",
        "the collector's own calls",
        "ids begin again",
        "work without a call",
        "no call of the program",
    ],
)
def test_work_of_unknown_calls_is_of_the_part_if_no_earlier_call_launched_it(
    calls, earlier, has_own_calls, ids, expected
):
    read_earlier = (lambda: columns(earlier)) if earlier else None
    launches = launches_between(columns(calls), read_earlier, *PART_NS, has_own_calls=has_own_calls)
    found = launches.among(np.array(ids, np.uint32), np.ones(len(ids), bool))
    assert [number for number, is_among in zip(ids, found, strict=True) if is_among] == expected
