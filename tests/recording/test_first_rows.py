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
