"""The order of rows in the page's tables."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from collector.text.natural_order import natural_order

MODULE = Path(__file__).resolve().parents[2] / "web" / "src" / "row_order.js"
NAMES = ["a", "a1", "a01", "a-1", "a1b", "a1b2", "ab", "", "7", "10", "x" + "1" * 5000, "x2"]
NAMES += ["\uffff1", "\U0001f600", "é²"]
SCRIPT = """
const { orderOf } = await import(process.argv[1]);
const { values, unit, descending } = JSON.parse(process.argv[2]);
const order = orderOf(values, unit, () => descending);
const rows = values.map((_, original) => ({ original }));
rows.sort((one, other) => order(one, other) * (descending ? -1 : 1)); // as the table does
console.log(JSON.stringify(rows.map((row) => values[row.original])));
"""


@pytest.mark.medium
@pytest.mark.parametrize(
    ("values", "unit", "ascending"),
    [
        ([3, None, -1, 0, None], "ratio", [-1, 0, 3, None, None]),
        ([3, 1, 2], "ns", [1, 2, 3]),
        ([None, "inf", 2, "-inf"], "ratio", ["-inf", 2, "inf", None]),
        ([None, "9007199254740993", 5], "ns", [5, "9007199254740993", None]),
        (["rank10.pb", "rank9.pb", "rank"], "text", ["rank", "rank9.pb", "rank10.pb"]),
        (NAMES[::-1], "text", sorted(sorted(NAMES), key=natural_order)),
    ],
)
def test_rows_are_in_the_order_of_a_column_and_unknown_values_last(values, unit, ascending):
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE ORDER OF ROWS IS NOT TESTED: it needs node")
    known = [value for value in ascending if value is not None]
    unknown = [None] * (len(values) - len(known))
    for descending, expected in ((False, known + unknown), (True, known[::-1] + unknown)):
        asked = json.dumps({"values": values, "unit": unit, "descending": descending})
        command = [node, "--input-type=module", "--eval", SCRIPT, MODULE.as_uri(), asked]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == expected
