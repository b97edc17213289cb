"""The times at the axes of the page, by its own functions, run by Node."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

TICKS = Path(__file__).resolve().parents[2] / "web" / "src" / "ticks.js"
SCRIPT = """
import { readFileSync } from "node:fs";
const ticks = await import(process.argv[1]);
const asked = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map(([name, ...given]) => ticks[name](...given))));
"""
UNITS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}
CHANCE = random.Random(1)


def answers(*asked: tuple[Any, ...]) -> list[Any]:
    """What functions of the module return, by their names and arguments."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S AXES ARE NOT TESTED: they need node")
    command = [node, "--input-type=module", "--eval", SCRIPT, TICKS.as_uri()]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found


def test_times_beside_each_other_have_one_unit_and_as_many_decimals_as_they_need():
    assert answers(
        ("timeTexts", [0, 2_000_000, 4_000_000]),
        ("timeTexts", [0, 500_000_000, 1_000_000_000]),
        ("timeTexts", [1_234_570_000, 1_234_575_000]),
        ("timeTexts", [0]),
        ("endTexts", {"start": 0, "end": 19_012_345}),
        ("endTexts", {"start": 3_600_000_000_000, "end": 3_600_000_012_345}),
        ("endTexts", {"start": 7, "end": 17}),
        ("endTexts", {"start": -100, "end": 10**9}),
    ) == [
        ["0 ms", "2 ms", "4 ms"],
        ["0.0 s", "0.5 s", "1.0 s"],
        ["1.234570 s", "1.234575 s"],
        ["0 ns"],
        ["0 ms", "19 ms"],
        ["3600.0000000 s", "3600.0000123 s"],
        ["7 ns", "17 ns"],
        ["0 s", "1 s"],
    ]


@pytest.mark.medium
def test_the_labels_of_an_axis_are_exact_differ_and_stand_apart():
    windows = []
    for _ in range(500):
        start = CHANCE.randrange(10 ** CHANCE.randrange(1, 14))
        windows.append(({"start": start, "end": start + CHANCE.randrange(10, 10 ** CHANCE.randrange(2, 13))}, 1200))
    windows += [(part, width) for part, _ in windows[:100] for width in (170, 400, 3000)]
    for (part, width), found in zip(windows, answers(*(("ticks", *each) for each in windows)), strict=True):
        labels = [each for each in found if each["text"]]
        assert labels or width == 170, part
        assert len({each["text"] for each in labels}) == len(labels)
        for each in labels:
            number, unit = each["text"].split(" ")
            assert round(float(number) * UNITS[unit]) == each["time"]
            assert part["start"] <= each["time"] <= part["end"]
        for one, other in pairwise(found):
            apart = (other["time"] - one["time"]) / (part["end"] - part["start"]) * width
            assert apart >= 7 * len(one["text"])


def test_an_axis_without_length_or_room_has_no_labels():
    part = {"start": 0, "end": 1000}
    assert answers(("ticks", part, 0), ("ticks", part, 3), ("ticks", {"start": 5, "end": 5}, 1000)) == [[], [], []]
