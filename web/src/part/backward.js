// GPU time of PyTorch's ops and of their backward passes in a part of a step (collector/analysis/backward.py).
import { byCodePoints, groupedBy } from "./groups.js";
import { marksOf, pathsOf, pathWithin } from "./ops.js";
import { activitiesOf } from "./rows.js";

/** @typedef {import("./answers.js").Asked} Asked */

const UNKNOWN = "(not recorded)";
const EVALUATION = "autograd::engine::evaluate_function: ";

/** Backward passes and their ops, -1: not known, as rows of annotations; `isAmbiguous`: ops of several threads have its number.
 * @param {Asked} asked @returns {{node: number, op: number, isAmbiguous: boolean}[]} */
export function linksOf({ rows: { annotations }, cut }) {
  const { sequence, start, length, thread, is_backward } = annotations;
  const end = (/** @type {number} */ row) => start[row] + length[row];
  const found = [];
  for (const [, own] of groupedBy(cut.annotations.filter((row) => sequence[row]), (row) => sequence[row])) {
    own.sort((one, other) => start[one] - start[other] || end(other) - end(one) || one - other);
    let [op, reached] = [-1, -Infinity];
    const threads = new Set();
    for (const row of own) {
      if (!is_backward[row]) {
        op = row;
        threads.add(thread[row]);
      } else if (start[row] >= reached) { // not inside another range of the same pass
        reached = end(row);
        const isAmbiguous = threads.size > 1;
        found.push({ node: row, op: isAmbiguous ? -1 : op, isAmbiguous });
      }
    }
  }
  return found.sort((one, other) => start[one.node] - start[other.node] || one.node - other.node);
}

/** The rows of annotations with those around them before them, each with the row around it, -1: none. @param {Asked} asked */
function nestedIn({ rows: { annotations: { thread, start, length } }, cut }) {
  const end = (/** @type {number} */ row) => start[row] + length[row];
  const rows = [...cut.annotations].sort((one, other) =>
    thread[one] - thread[other] || start[one] - start[other] || end(other) - end(one) || one - other);
  /** @type {number[]} */
  let open = [];
  return rows.map((row, place) => {
    if (place && thread[row] !== thread[rows[place - 1]]) open = [];
    while (open.length && end(open[open.length - 1]) < end(row)) open.pop();
    const parent = open.length ? open[open.length - 1] : -1;
    open.push(row);
    return { row, parent };
  });
}

/** @param {unknown} _ @param {Asked} asked */
export function backward(_, asked) {
  const { rows: { work }, answers } = asked;
  const links = linksOf(asked);
  const paths = pathsOf(asked);
  const marks = new Set(marksOf(asked, paths).map((row) => /** @type {string} */ (paths.get(row))));
  const nested = nestedIn(asked);
  /** Number and time of the activities launched in each range; of several ranges around one the innermost counts.
   * @param {number[]} ranges */
  const launchedIn = (ranges) => {
    /** @type {Map<number, number>} */
    const owner = new Map();
    ranges.forEach((row, link) => { if (row >= 0 && !owner.has(row)) owner.set(row, link); }); // of several passes the first
    for (const { row, parent } of nested) {
      const around = owner.get(parent);
      if (!owner.has(row) && around !== undefined) owner.set(row, around);
    }
    const sums = ranges.map(() => ({ count: 0, time: 0 }));
    for (const row of activitiesOf(asked)) {
      const link = owner.get(work.annotation[row] - 1);
      if (link === undefined) continue;
      sums[link].count++;
      sums[link].time += work.length[row];
    }
    return sums;
  };
  const [forward, back] = [launchedIn(links.map((each) => each.op)), launchedIn(links.map((each) => each.node))];
  const names = answers["annotation_times/name"]?.values[0] ?? [];
  const runs = [...groupedBy(links.keys(), (link) => {
    const { node, op } = links[link];
    const name = String(names[asked.rows.annotations.code[node]]);
    const path = op >= 0 ? pathWithin(/** @type {string} */ (paths.get(op)), marks) : UNKNOWN;
    const own = name.slice(name.lastIndexOf("/") + 1);
    return JSON.stringify([path, own.startsWith(EVALUATION) ? own.slice(EVALUATION.length) : own]);
  })];
  return runs.map(([key, own]) => {
    const [path, node] = JSON.parse(key);
    const sum = (/** @type {typeof forward} */ sums, /** @type {"count" | "time"} */ what) =>
      own.reduce((found, link) => found + sums[link][what], 0);
    const [forward_ns, backward_ns] = [sum(forward, "time"), sum(back, "time")];
    return {
      path, node, runs: own.length, forward_activities: sum(forward, "count"), backward_activities: sum(back, "count"),
      forward_ns, backward_ns, backward_ratio: forward_ns ? backward_ns / forward_ns : null,
    };
  }).sort((one, other) => other.backward_ns - one.backward_ns || other.forward_ns - one.forward_ns ||
    byCodePoints(one.path, other.path) || byCodePoints(one.node, other.node));
}
