"""Texts by number: the last text that was given a number has it, and no text is there twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.recording.numbered_texts import NumberedTexts

NUMBERS = st.one_of(st.integers(0, 8), st.just((1 << 32) - 1))


@given(st.lists(st.tuples(NUMBERS, st.text("abc", max_size=2))), st.lists(NUMBERS))
def test_places_are_those_of_a_dictionary(added, asked):
    found = NumberedTexts()
    for number, text in added:
        found.add(number, text)
    known = dict(added)
    places = found.places(np.array(asked, "u4"))
    assert [found.texts[place] if place >= 0 else None for place in places] == [known.get(each) for each in asked]
    assert sorted(found.texts) == sorted({text for _, text in added})


def test_texts_without_numbers_are_counted():
    found = NumberedTexts()
    found.append(["a", "b"])
    found.append(["a"])
    assert found.places(np.array([0, 1, 2, 3])).tolist() == [0, 1, 0, -1]
    found.count_from(0)
    found.append(["a", "b", "a", "c"])
    assert found.places(np.array([3])).tolist() == [2]
    assert found.texts == ["a", "b", "c"]
