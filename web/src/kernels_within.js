// The kernels of a part of a step, summed up from the slices that the page holds, as Python sums up those of
// `recording.between(start, end)`: whatever overlaps the part counts whole. All sums are exact integers.

/** @typedef {import("./provider.js").Answer} Answer */
/** @typedef {import("./provider.js").Slices} Slices */
/** @typedef {import("./provider.js").Step} Step */

/** Whether the page has every slice of a step. @param {Step} step */
export function hasAllSlices(step) {
  return step.lanes_left_out === 0 && step.slices === step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
}

/** Order of texts as in Python, by code points. @param {string} one @param {string} other */
function byCodePoints(one, other) {
  const [left, right] = [[...one], [...other]];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = /** @type {number} */ (left[at].codePointAt(0)) - /** @type {number} */ (right[at].codePointAt(0));
    if (difference) return difference;
  }
  return left.length - right.length;
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
    if (slices.start[at] > part.end || slices.start[at] + slices.length[at] < part.start) continue;
    const key = (by === "stream" ? slices.lane[at] : 0) * names + slices.name[at];
    const group = groups.get(key);
    if (group) group.push(slices.length[at]);
    else groups.set(key, [slices.length[at]]);
  }
  let count = 0;
  let whole = 0;
  const rows = [...groups].map(([key, lengths]) => {
    lengths.sort((one, other) => one - other);
    const total = lengths.reduce((sum, each) => sum + each, 0);
    count += lengths.length;
    whole += total;
    const lane = step.lanes[Math.floor(key / names)];
    return { device: lane.device_id, stream: lane.stream_id, name: step.names[key % names], lengths, total };
  });
  rows.sort((one, other) =>
    other.total - one.total ||
    (by === "stream" ? one.device - other.device || one.stream - other.stream : 0) ||
    byCodePoints(one.name, other.name));
  /** @type {Record<string, (row: typeof rows[0]) => string | number>} */
  const values = {
    device_id: (row) => row.device,
    stream_id: (row) => row.stream,
    name: (row) => row.name,
    count: (row) => row.lengths.length,
    total_ns: (row) => row.total,
    share: (row) => (whole ? row.total / whole : 0),
    min_ns: (row) => row.lengths[0],
    median_ns: (row) => row.lengths[(row.lengths.length - 1) >> 1],
    max_ns: (row) => row.lengths[row.lengths.length - 1],
  };
  const columns = answer.columns.filter((column) => column.name in values);
  return {
    ...answer,
    columns,
    values: columns.map((column) => rows.map(values[column.name])),
    rows: rows.length,
    totals: { count, total_ns: whole },
    python: `began = step.recording.clock.cupti_start_ns\nanalysis.kernels(step.recording.between(began + ${part.start}, began + ${part.end}), by="${by}")`,
    cli: `${answer.cli} --window ${part.start}ns..${part.end}ns`,
  };
}
