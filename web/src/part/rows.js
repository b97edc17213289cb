// The rows of a step (collector/web/part_rows.py), and the rows of a part of it: those that overlap the part, the calls and
// annotations that launched them, and the annotations around these and around moments, as `Recording.between` selects them.
import { columnsOf } from "../byte_planes.js";
import { overlaps } from "../window.js";

/** @typedef {{start: number, end: number}} Part */
/** @typedef {Record<string, Float64Array>} Table Its columns by name. */
/** @typedef {{tables: [string, number, Record<string, number>][], first: number, kinds: number[][], kind_keys: string[],
 *   streams: [number, number, number, string][], devices: number[], memory_places: [number, string, string][], whole_paths: boolean,
 *   names: string[], activity_tables: string[], odd_operations: number[], notes: import("./notes.js").PartNotes}} RowsInfo `first`: the earliest start, in ns since the step began. */
/** @typedef {{work: Table, calls: Table, graph_launches: Table, annotations: Table, externals: Table, overheads: Table,
 *   memory: Table}} Rows Launches of graphs are rows of `work` as well if they were recorded as a whole. */
/** @typedef {{part: Part, work: number[], calls: number[], graph_launches: number[], annotations: number[],
 *   overheads: number[], memory: number[], isCaused: Uint8Array}} Cut Rows of each table, in their order; `isCaused`:
 *   whether the part has a correlation. */

/** Classes of activities, as collector/analysis/activities.py numbers them. */
export const [COMPUTE, COMMUNICATION, COPY, MEMSET, GRAPH] = [0, 1, 2, 3, 4];

/** @param {RowsInfo} info @param {Uint8Array} bytes @returns {Rows} */
export function rowsOf(info, bytes) {
  /** @type {Record<string, Table>} */
  const tables = {};
  let offset = 0;
  for (const [name, count, widths] of info.tables) {
    const columns = columnsOf(bytes, offset, count, Object.values(widths));
    tables[name] = Object.fromEntries(Object.keys(widths).map((column, at) => [column, columns[at]]));
    const { start } = tables[name]; // of externals there is none
    if (start) for (let row = 0; row < count; row++) start[row] += info.first;
    offset += count * Object.values(widths).reduce((sum, width) => sum + width, 0);
  }
  return /** @type {any} */ (tables);
}

/** @param {Table} table @param {Part} part @param {Uint8Array} [also] rows that are kept in any case */
function overlapping(table, part, also) {
  const kept = [];
  for (let row = 0; row < table.start.length; row++) {
    const start = table.start[row];
    if (overlaps(start, start + (table.length?.[row] ?? 0), part) || also?.[row]) kept.push(row);
  }
  return kept;
}

/** The kernels, copies and memsets of a part, without graphs that were recorded as a whole.
 * @param {{rows: Rows, cut: Cut}} asked */
export function activitiesOf({ rows: { work }, cut }) {
  return cut.work.filter((row) => work.work_class[row] !== GRAPH);
}

/** @type {WeakMap<Table, Int32Array>} */
const knownParents = new WeakMap();

/** For each annotation the row of the annotation that encloses it on its thread, -1: none (collector/recording/nesting.py).
 * @param {Table} annotations */
export function parentsOf(annotations) {
  const known = knownParents.get(annotations);
  if (known) return known;
  const { thread, start, length } = annotations;
  const end = (/** @type {number} */ row) => start[row] + length[row];
  const parents = new Int32Array(start.length).fill(-1);
  const nested = [...start.keys()].sort((one, other) =>
    thread[one] - thread[other] || start[one] - start[other] || end(other) - end(one) || one - other);
  /** @type {number[]} */
  let open = [];
  nested.forEach((row, place) => {
    if (place && thread[row] !== thread[nested[place - 1]]) open = [];
    while (open.length && end(open[open.length - 1]) < end(row)) open.pop();
    if (open.length) parents[row] = open[open.length - 1];
    if (length[row] > 0) open.push(row);
  });
  knownParents.set(annotations, parents);
  return parents;
}

/** @param {Rows} rows @param {Part} part @returns {Cut} */
export function cutTo(rows, part) {
  const { work, calls, graph_launches, annotations, externals } = rows;
  const keptWork = overlapping(work, part);
  const keptGraphs = overlapping(graph_launches, part);
  const isLaunch = new Uint8Array(calls.start.length);
  let most = 0;
  for (const table of [work, calls, graph_launches, externals]) for (const each of table.correlation) most = Math.max(most, each);
  const isCaused = new Uint8Array(most + 1);
  for (const [table, kept] of /** @type {[Table, number[]][]} */ ([[work, keptWork], [graph_launches, keptGraphs]])) {
    for (const row of kept) {
      if (table.call[row]) isLaunch[table.call[row] - 1] = 1;
      isCaused[table.correlation[row]] = 1;
    }
  }
  const keptCalls = overlapping(calls, part, isLaunch);
  for (const row of keptCalls) isCaused[calls.correlation[row]] = 1;
  const owners = new Set();
  for (let row = 0; row < externals.owner.length; row++) if (isCaused[externals.correlation[row]]) owners.add(externals.owner[row]);
  const isOwner = new Uint8Array(annotations.start.length);
  for (const row of keptWork) if (work.captured[row]) owners.add(annotations.owner[work.captured[row] - 1]);
  const parents = parentsOf(annotations);
  const { start, length, owner } = annotations;
  for (let row = 0; row < isOwner.length; row++) {
    if (!owners.has(owner[row]) && (length[row] || !overlaps(start[row], start[row], part))) continue;
    for (let each = row; each >= 0 && !isOwner[each]; each = parents[each]) isOwner[each] = 1;
  }
  return {
    part, work: keptWork, calls: keptCalls, graph_launches: keptGraphs, annotations: overlapping(annotations, part, isOwner),
    overheads: overlapping(rows.overheads, part), memory: overlapping(rows.memory, part), isCaused,
  };
}
