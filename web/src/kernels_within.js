// The kernels of a part of a step, summed up from the slices that the page holds, as Python sums up those of
// `recording.between(start, end)`: whatever overlaps the part counts whole. All sums are exact integers.

import { figuresOf, longestFirst, longestOf, longestTimes, shared } from "./part/groups.js";
import { overlaps, within } from "./window.js";

/** @typedef {import("./provider.js").Answer} Answer */
/** @typedef {import("./provider.js").Slices} Slices */
/** @typedef {import("./provider.js").Step} Step */

/** Columns that slices tell. */
const KNOWN = new Set(["device_id", "context_id", "stream_id", "stream_name", "name", "count", "total_ns", "share", "min_ns", "median_ns", "max_ns"]);

/** Bytes of times that are exact in the page. */
const EXACT_BYTES = 6;

/** Whether the page has every slice of a step, with its exact times. @param {Step} step */
export function hasAllSlices(step) {
  return step.lanes_left_out === 0 && step.time_bytes <= EXACT_BYTES && step.slices === step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
}

/** The answer `kernels/name` or `kernels/stream` about a part of a step, which needs all slices of it. Columns that slices
 * do not tell are left out.
 * @param {Answer} answer about the whole step, from which the columns are taken
 * @param {Step} step @param {Slices} slices
 * @param {{start: number, end: number}} part in ns since the step began
 * @param {"name" | "stream"} by @returns {Answer} */
export function kernelsWithin(answer, step, slices, part, by) {
  /** @type {Map<number, number[]>} */
  const groups = new Map();
  const names = step.names.length;
  for (let at = 0; at < slices.lane.length; at++) {
    const lane = step.lanes[slices.lane[at]];
    if (lane.kind !== "stream" || slices.name[at] >= step.kernel_names) continue;
    if (!overlaps(slices.start[at], slices.start[at] + slices.length[at], part)) continue;
    const key = (by === "stream" ? slices.lane[at] : 0) * names + slices.name[at];
    const group = groups.get(key);
    if (group) group.push(at);
    else groups.set(key, [at]);
  }
  const found = [...groups].map(([key, own]) => {
    const lane = step.lanes[Math.floor(key / names)];
    const { device_id, context_id, stream_id, stream_name } = lane;
    return { device_id, context_id, stream_id, stream_name, name: step.names[key % names],
      ...figuresOf(own.map((at) => slices.length[at])), longest: longestOf(slices, own) };
  });
  /** @type {import("./part/groups.js").Row[]} */
  const rows = shared(longestFirst(found, answer.columns.map((each) => each.name)));
  const columns = answer.columns.filter((column) => KNOWN.has(column.name));
  return {
    ...answer,
    columns,
    values: columns.map((column) => rows.map((row) => row[column.name])),
    rows: rows.length,
    longest: longestTimes(rows),
    totals: {
      count: rows.reduce((sum, each) => sum + each.count, 0),
      total_ns: rows.reduce((sum, each) => sum + each.total_ns, 0),
    },
    part,
    sql: "",
    ...within(answer, part),
  };
}
