"""The page writes figures and names as Python does: its own functions, run by Node, against those of the terminal."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hostile_names import EVIL

from collector.analysis.step_marks import CUT_STEPS
from collector.analysis.whole_graphs import COUNTED, NOT_COUNTED
from collector.text.quantities import size_text, time_text
from collector.text.terminal import printable
from collector.text.wording import counted

NUMBERS = Path(__file__).resolve().parents[2] / "web" / "src" / "numbers.js"
SCRIPT = """
import { readFileSync } from "node:fs";
const { shown } = await import(process.argv[1]);
const asked = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map(([unit, value]) => shown(value, unit))));
"""
CHANCE = random.Random(1)
TIMES = [0, 1, 999, 1000, 1062, 12_345, 99_995, 999_949, 999_950, 999_999, 1_000_500, 2_500_000, 10**9 - 1, 10**12]
TIMES += [CHANCE.randrange(10 ** CHANCE.randrange(1, 15)) for _ in range(2000)]
TIMES += [int(f"{CHANCE.randrange(1000, 10000)}5") * 10**power for power in range(8) for _ in range(50)]  # halves
SIZES = [0, 1, 2, 999, 1000, 4_194_304, 10**9, 1_234_567_890, 10**15]
SIZES += [CHANCE.randrange(10 ** CHANCE.randrange(1, 15)) for _ in range(500)]
SHARES = [0, 0.0005, 0.00049, 0.125, 0.12345, 0.99949, 0.9995, 1, 0.0625, 0.3125]
SHARES += [CHANCE.random() for _ in range(500)] + [each / 2048 for each in range(0, 2048, 7)]
RATIOS = [0, 0.5, 0.0001234, 0.00001234, 1.005, 12.25, 12.35, 999.5, 1234.5, 1e10, -3.456, 0.000099995]
RATIOS += [CHANCE.uniform(-1, 1) * 10 ** CHANCE.randrange(-8, 12) for _ in range(1000)]
NAMES = ["plain", "a b", "tab\there", "é€😀", "\u202eback", EVIL, "\x00", "\u2028", "\xa0", "\ue000", "\u3000", "\x85"]
CASES = {
    "ns": (TIMES, time_text),
    "bytes": (SIZES, size_text),
    "count": (SIZES, lambda value: f"{value:,}"),
    "share": (SHARES, lambda value: f"{value:.1%}"),
    "ratio": (RATIOS, lambda value: f"{value:.3g}"),
    "bytes/s": ([abs(each) * 1e9 for each in RATIOS], lambda value: f"{value / 1e9:.4g} GB/s"),
    "text": (NAMES, printable),
}


@pytest.mark.medium
@pytest.mark.parametrize("unit", CASES)
def test_values_are_written_as_python_writes_them(unit):
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S NUMBERS ARE NOT TESTED: they need node")
    values, written = CASES[unit]
    command = [node, "--input-type=module", "--eval", SCRIPT, NUMBERS.as_uri()]
    asked = json.dumps([[unit, value] for value in values])
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    assert dict(zip(values, json.loads(done.stdout), strict=True)) == {value: written(value) for value in values}


def test_sentences_with_a_count_are_those_of_python():
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE PAGE'S NUMBERS ARE NOT TESTED: they need node")
    script = (
        SCRIPT.replace("shown", "counted")
        .replace("[unit, value]", "[text, count]")
        .replace("value, unit", "text, count")
    )
    texts = [COUNTED, NOT_COUNTED, CUT_STEPS, "{:,} cop[y|ies] [is|are] [|not] one"]
    asked = [(text, count) for text in texts for count in (0, 1, 2, 999, 1000, 1_234_567)]
    command = [node, "--input-type=module", "--eval", script, NUMBERS.as_uri()]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [counted(text, count) for text, count in asked]
