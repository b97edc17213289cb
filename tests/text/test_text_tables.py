"""Tables for a terminal: lines that fit, whole figures, and names that stay apart when they are cut."""

from __future__ import annotations

import pytest

from collector.text.text_tables import cut_names, folded, table_text, text_width

GEMMS = [
    f"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x{tile}x32_warpgroupsize1x1x1_execute_kernel__5x_cublas"
    for tile in (128, 64)
]
HEADS = ["name", "count before", "total", "share", "most registers"]
IS_NAME = [True, False, False, False, False]


def rows(names):
    return [[name, "1,000", "23.44 µs", "14.0%", "255"] for name in names]


def columns_of(text, row):
    """The cells of a row, wherever the table is divided."""
    return [part.splitlines()[row].split() for part in text.split("\n\n")]


def test_a_table():
    assert table_text(["kernel", "count"], [["relu", "2"], ["add", "10"]], [True, False], 80) == (
        " kernel  count\n ─────────────\n relu        2\n add        10"
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
@pytest.mark.parametrize(
    "names", [GEMMS, ["漢字" * 30, "a/漢字" * 20], ["short", "x" * 500]], ids=["long", "wide", "mixed"]
)
def test_lines_fit_and_figures_are_whole(width, names):
    text = table_text(HEADS, rows(names), IS_NAME, width)
    assert max(map(text_width, text.splitlines())) <= width
    assert all(line == line.rstrip() for line in text.splitlines())
    for figure in ("1,000", "23.44 µs", "14.0%", "255"):
        assert text.count(figure) == len(names)


def test_columns_that_do_not_fit_stand_below_each_other_with_the_names():
    text = table_text(["device", *HEADS], [["0", *row] for row in rows(GEMMS)], [False, *IS_NAME], 50)
    parts = text.split("\n\n")
    assert len(parts) == 2
    assert all("device" in part and "name" in part and "8x64x32" in part for part in parts)
    assert ("total" in parts[0]) != ("total" in parts[1])


def test_a_name_is_cut_to_one_line_rather_than_a_part_more_for_one_column():
    assert "\n\n" not in table_text(HEADS, rows(GEMMS), IS_NAME, 54)


def test_a_terminal_too_narrow_for_anything_still_gets_every_figure():
    text = table_text(HEADS, rows(GEMMS), IS_NAME, 10)
    assert text.count("23.44 µs") == 2


def test_whole_names_make_lines_longer_than_the_terminal():
    text = table_text(HEADS, rows(GEMMS), IS_NAME, 40, whole_names=True)
    assert all(name in text for name in GEMMS)
    assert len(text.splitlines()) == 4
    assert "count before" in text


def test_cut_names_that_differ_look_different():
    for width in (20, 30, 60, 90):
        shown = cut_names(GEMMS, width)
        assert len(set(shown)) == 2
        assert max(map(len, shown)) <= width
    many = [f"kernel<{'a' * 60}{number:03}{'b' * 60}>" for number in range(300)]
    assert len(set(cut_names(many, 24))) == 300


def test_a_path_keeps_its_end_and_another_name_its_beginning():
    assert cut_names(["step/model/encoder/layer.11/attention/softmax"], 24) == ["step/m…attention/softmax"]
    assert cut_names(["vectorized_elementwise_kernel<4, Functor<float>>"], 24) == ["vectorized_eleme…float>>"]


def test_names_that_fit_are_not_touched():
    assert cut_names(["", "a", "b" * 12], 12) == ["", "a", "b" * 12]


def test_colours_are_of_the_head_alone():
    text = table_text(["kernel"], [["relu"]], [True], 80, color=True)
    assert text.startswith("\x1b[1m kernel\x1b[0m\n")
    assert text.count("\x1b") == 2


def test_sentences_are_folded_at_words():
    assert folded("one two three", 8) == ["one two", "three"]
    assert folded("averylongword", 4) == ["averylongword"]


def test_every_line_fits_whatever_the_names_are():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=60)

    @hypothesis.given(st.lists(texts, min_size=1, max_size=6), st.integers(30, 160))
    def check(names, width):
        text = table_text(HEADS, rows(names), IS_NAME, width)
        assert max(map(text_width, text.splitlines())) <= width

    check()
