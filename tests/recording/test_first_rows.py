"""The first row of each id, and the look-up of ids."""

import numpy as np

from collector.recording.first_rows import first_rows, look_up


def test_the_first_row_of_each_id_is_that_of_the_least_key():
    ids = np.array([7, 3, 7, 3, 9])
    assert [each.tolist() for each in first_rows(ids)] == [[3, 7, 9], [1, 0, 4]]
    starts = np.array([50, 40, 20, 30, 10])
    assert [each.tolist() for each in first_rows(ids, starts)] == [[3, 7, 9], [3, 2, 4]]
    is_work = np.array([False, False, True, True, False])
    assert [each.tolist() for each in first_rows(ids, is_work, starts)] == [[3, 7, 9], [1, 0, 4]]


def test_missing_ids_and_zero_are_not_found():
    keys, values = np.array([0, 3, 7]), np.array([10, 11, 12])
    assert look_up(np.array([7, 4, 3, 0, 9]), keys, values).tolist() == [12, -1, 11, -1, -1]
    assert look_up(np.array([7]), keys[:0], values[:0]).tolist() == [-1]


def test_keys_that_lie_close_together_are_found_like_others():
    wanted = np.array([0, 1, 2, 3, 4, 5, 6, 7, 2**40, -1])
    for keys in (np.array([0, 2, 2, 5, 6]), np.array([2, 3, 5]), np.array([1, 2, 2**40]), np.array([2], np.uint64)):
        values = np.arange(len(keys)) + 10
        found = {int(key): int(value) for key, value in zip(keys[::-1], values[::-1], strict=True) if key}
        assert look_up(wanted, keys, values).tolist() == [found.get(each, -1) for each in wanted.tolist()]
