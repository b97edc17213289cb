"""The trees of views as columns, compared with plain loops over their nodes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from collector.profiler.api import Profiler
from collector.profiler.profile_options import Options
from collector.profiler.views.preorder import Preorder
from collector.profiler.views.tree_message import tree_message
from collector.protos import GraphDef, GraphNodeProto
from collector.runtime.extension import convert_extension


def _depths(source: random.Random) -> list[int]:
    """Of a few trees side by side."""
    depths: list[int] = []
    for _ in range(source.randint(0, 30)):
        depths.append(source.randint(source.random() > 0.2, depths[-1] + 1) if depths else 0)
    return depths


def _parents(depths: list[int]) -> list[int]:
    path: list[int] = []
    parents = []
    for row, depth in enumerate(depths):
        del path[depth:]
        parents.append(path[-1] if path else -1)
        path.append(row)
    return parents


def _above(parents: list[int], row: int) -> list[int]:
    above = []
    while parents[row] >= 0:
        row = parents[row]
        above.append(row)
    return above


@pytest.mark.parametrize("seed", range(100))
def test_sums_and_orders_are_those_of_walks(seed):
    source = random.Random(seed)
    depths = _depths(source)
    rows = range(len(depths))
    shape, parents = Preorder.of_depths(depths), _parents(depths)
    values = np.array([source.randint(-5, 5) for _ in rows], np.int64)
    keys = np.array([source.randint(0, 3) for _ in rows], np.int64)
    chosen = np.array([source.random() < 0.5 for _ in rows], bool)

    def walk(parent: int) -> list[int]:
        below = sorted((row for row in rows if parents[row] == parent), key=keys.__getitem__)
        return [each for row in below for each in (row, *walk(row))]

    assert shape.depths.tolist() == depths
    assert shape.parents.tolist() == parents
    assert shape.ranks.tolist() == [parents[:row].count(parents[row]) for row in rows]
    assert shape.above(values).tolist() == [sum(values[each] for each in _above(parents, row)) for row in rows]
    assert shape.below(values).tolist() == [
        sum(values[each] for each in rows if each == row or row in _above(parents, each)) for row in rows
    ]
    assert shape.sorted_by(keys).tolist() == walk(-1)
    assert shape.part(chosen).depths.tolist() == [
        sum(chosen[each] for each in _above(parents, row)) for row in rows if chosen[row]
    ]


@pytest.mark.parametrize("levels", [1, 89, 90, 91, 400])
def test_a_message_may_be_deeper_than_protobuf_parses(levels):
    expected = parent = GraphNodeProto(name="node0")
    depths, names = [0], ["node0"]
    for level in range(1, levels):
        for _ in range(2):
            names.append(f"node{len(names)}")
            depths.append(level)
            parent.children.add(name=names[-1], run_count=len(names) - 1, devices=["/gpu:0"])
        parent = parent.children[-1]
    numbers = {"run_count": np.arange(len(depths))}
    texts = {"name": names, "devices": ["", *["/gpu:0"] * (len(depths) - 1)]}
    made = tree_message(Preorder.of_depths(depths), numbers, texts, [b""] * len(depths))
    assert made == expected


@pytest.mark.parametrize("depths", [[], [1], [0, 0], [0, 2], [0, 1, -1]])
def test_depths_of_no_tree_are_refused(depths):
    with pytest.raises(ValueError, match="depths"):
        convert_extension.message_tree(np.array(depths, np.int64), [], [], [b""] * len(depths), children=12)


def test_columns_of_other_lengths_are_refused():
    depths = np.array([0, 1])
    for numbers, texts, encoded in (
        ([(2, np.arange(3))], [], [b"", b""]),
        ([], [(1, ["a"])], [b"", b""]),
        ([], [], [b""]),
    ):
        with pytest.raises(ValueError, match="as many values as rows"):
            convert_extension.message_tree(depths, numbers, texts, encoded, children=12)


def test_names_with_odd_letters_stand_below_their_folder():
    graph = GraphDef()
    for name in ("a/b", "a", "a-b", "a\0b", "a//c", "/d", "a/b/e"):
        graph.node.add(name=name, op="Add")
    text = Profiler(graph).reporter.ask("scope", Options(select=frozenset())).text
    assert [line.rpartition(" (")[0] for line in text.splitlines()[-10:]] == [
        "_TFProfRoot",
        "  ",
        "    /d",
        "  a",
        "    a/",
        "      a//c",
        "    a/b",
        "      a/b/e",
        "  a\0b",
        "  a-b",
    ]
