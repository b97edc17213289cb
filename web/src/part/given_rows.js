// The rows of an answer that the page is given, where it has more than that (collector/web/given_rows.py).
import { byCodePoints } from "./groups.js";

/** @typedef {import("./groups.js").Row} Row */
/** @typedef {import("../provider.js").Column} Column */
/** @typedef {{rows: Row[], chosen_by: string, left_out: [number, number, number][]}} Given */

const MOST_ROWS = 5000;
const MOST_LARGEST = 8;
const ROOT = -1;

/** The first rows; of a tree those with the largest totals and the rows around them.
 * @param {Row[]} rows @param {Column[]} columns @param {number} [most] @returns {Given} */
export function givenRows(rows, columns, most = MOST_ROWS) {
  const total = columns.find((each) => each.name.startsWith("total_"))?.name;
  const isTree = ["path", "depth"].every((name) => columns.some((each) => each.name === name));
  if (rows.length <= most || !total || !isTree) return { rows: rows.slice(0, most), chosen_by: "", left_out: [] };
  const totals = rows.map((row) => row[total]);
  const parents = parentsOf(rows);
  const chosen = largestRows(parents, totals, most);
  return { rows: chosen.map((place) => rows[place]), chosen_by: total, left_out: leftOut(parents, totals, chosen) };
}

/** The rows with the largest figures of a column, the largest first (collector/analysis/largest_paths.py).
 * @param {Row[]} rows with a path @param {string} column */
export function largestPaths(rows, column) {
  return [...rows].sort((one, other) => other[column] - one[column] || byCodePoints(one.path, other.path)).slice(0, MOST_LARGEST);
}

/** The place of the row around each row. @param {Row[]} rows */
function parentsOf(rows) {
  /** @type {number[]} */
  const around = [];
  return rows.map(({ depth }, place) => {
    around.length = depth;
    around.push(place);
    return depth ? around[depth - 1] : ROOT;
  });
}

/** The places of the rows with the largest totals, in the order of the tree. A row counts with the largest total inside it.
 * @param {number[]} parents @param {number[]} totals @param {number} most */
function largestRows(parents, totals, most) {
  const largest = [...totals];
  for (let place = parents.length - 1; place >= 0; place--) {
    const parent = parents[place];
    if (parent !== ROOT) largest[parent] = Math.max(largest[parent], largest[place]);
  }
  return largest.map((_, place) => place).sort((one, other) => largest[other] - largest[one] || one - other)
    .slice(0, most).sort((one, other) => one - other);
}

/** By the innermost chosen row around them, the rows that are left out: its place among the chosen ones, their number, and
 * the sum of the totals of the outermost of them.
 * @param {number[]} parents @param {number[]} totals @param {number[]} chosen @returns {[number, number, number][]} */
function leftOut(parents, totals, chosen) {
  const placeOf = new Map(chosen.map((row, place) => [row, place]));
  /** @type {number[]} */
  const owners = [];
  /** @type {Map<number, [number, number, number]>} */
  const found = new Map();
  parents.forEach((parent, row) => {
    const isOutermost = parent === ROOT || placeOf.has(parent);
    const owner = isOutermost ? placeOf.get(parent) ?? ROOT : owners[parent];
    owners.push(owner);
    if (placeOf.has(row)) return;
    const own = found.get(owner) ?? [owner, 0, 0];
    found.set(owner, [owner, own[1] + 1, own[2] + (isOutermost ? totals[row] : 0)]);
  });
  return [...found.values()].sort((one, other) => one[0] - other[0]);
}
