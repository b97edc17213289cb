// Where the page has its data from: islands of gzipped base64 in the file itself, or the server that it came from.
import { columnsOf } from "./byte_planes.js";
import { rowsOf } from "./part/rows.js";
import { askBytes, loadServedPage } from "./server.js";

/** @typedef {{name: string, unit: string, meaning: string}} Column */
/** @typedef {import("./numbers.js").Value} Value */
/** @typedef {{question: string, definition: string, columns: Column[], values: Value[][], rows: number,
 *   chosen_by?: string, left_out?: [number, number, Value][], largest?: Value[][], longest?: number[][],
 *   totals: Record<string, Value>, losses: string[], notes: string[], python: string, cli: string, sql?: string,
 *   part?: {start: number, end: number} | null, refused?: string}} Answer `rows`: how many there are, of which `values` has those that the page
 *   is given, `chosen_by` the largest figures of a column; `left_out` of a tree: place of a given row or -1, the number of
 *   rows inside it that are not given, and the sum of their totals; `largest`: values of the rows with the largest
 *   figures, for views of a few; `longest`: start and end of the longest of what each row counts, in ns since the step
 *   began; `part`: what of the step it is about, where it is not all; `refused`: why the server did
 *   not search all rows. */
/** @typedef {{kind: "device" | "stream" | "annotations" | "calls" | "tracer", name: string, slices: number,
 *   device_id: number, context_id: number, stream_id: number, stream_name: string}} LaneInfo */
/** @typedef {{severity: string, checker: string, line: string, evidence: string[], rows: string, cause: string,
 *   gap: [number, number] | null}} Finding `rows`: key of the answer with the rows that it is about; `cause`: that of the idle
 *   time that it is about, or ""; `gap`: begin and end of the longest gap with it. */
/** @typedef {{name: string, steps: number[]}} Side */
/** @typedef {{before: Side, now: Side, answers: Record<string, Answer>}} Comparison */
/** @typedef {{name: string, warning: string | null, unavailable: string | null, nothing: string, simulated: boolean,
 *   label: string, git_revision: string, models: [number, string][], recorded_with: [string, string][], length_ns: number, verdict: string, losses: string[], ledger: [string, number][], answers: Record<string, Answer>,
 *   findings: Finding[], lanes: LaneInfo[], lanes_left_out: number, names: string[], kernel_names: number,
 *   memory: import("./views/memory.js").Curve[], start_ns: string, first_ns: number, time_bytes: number, bins: number, full: number,
 *   rows?: import("./part/rows.js").RowsInfo | null, slices: number, marks: [number, number][], loss_times: Record<string, number[]>, id?: string,
 *   listed: Record<string, Answer>, whole: Record<string, Answer>}} Step `models`: of devices whose model is
 *   known; `id`: of the run, where a server has it; `answers`: about
 *   the chosen window, where they can be had; `listed`: the same for tables that are searched and sorted, whose rows the
 *   server chooses where it does not give all; `whole`: about the whole step, as marks, losses and findings are. */
/** @typedef {{format: string, version: string, title: string, first: number, steps: Step[], answers: Record<string, Answer>,
 *   refused: Record<string, string>, compare?: Comparison | null, tables?: import("./views/listing.js").PageTable[]}} Page
 *   `tables`: of a page about no single step. */
/** @typedef {{lane: Float64Array, start: Float64Array, length: Float64Array, name: Float64Array}} Slices */
/** @typedef {{bins: Uint8Array, slices: Slices, first: Uint32Array, outlasting: Int32Array}} LaneData `bins`: the busy share
 *   of each part of the step, lane after lane; `first`: the first slice of each lane; `outlasting`: of each slice the last one
 *   before it that ends later, on its lane or one before; -1: there is none. */

/** @param {string} name @returns {Promise<Uint8Array>} */
async function island(name) {
  const element = document.getElementById(name);
  if (!element) throw new Error(`the file has no part ${name}: it was cut or changed. Write the report again, or get another copy.`);
  try {
    const packed = Uint8Array.from(atob(element.textContent ?? ""), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch { // whatever browsers say of it
    throw new Error(`the part ${name} of the file is damaged: it was cut or changed. Write the report again, or get another copy.`);
  }
}

/** Whether the data comes from a server. */
export const isServed = document.getElementById("data") === null;

/** The data of the file, or of some runs of a server.
 * @param {import("./server.js").Wanted} [wanted] @returns {Promise<Page>} */
export async function loadPage(wanted) {
  if (wanted) return loadServedPage(wanted);
  const page = JSON.parse(new TextDecoder().decode(await island("data")));
  return { ...page, steps: page.steps.map((/** @type {Step} */ step) => ({ ...step, listed: step.answers, whole: step.answers })) };
}

/** The licences of the libraries in the page. */
export async function loadLicences() {
  return new TextDecoder().decode(await (isServed ? askBytes("/licences") : island("licences")));
}

/** What is drawn in the lanes of a step. @param {Step} step @param {number} place @param {string} kind */
function drawn(step, place, kind) {
  return step.id ? askBytes(`/api/runs/${step.id}/${kind}`) : island(`${kind}-${place}`);
}

/** The slices of a step, lane after lane and by their starts; times in ns since the step began.
 * @param {Step} step @param {number} place @returns {Promise<Slices>} */
async function loadSlices(step, place) {
  const bytes = await drawn(step, place, "slices");
  const widths = [2, step.time_bytes, step.time_bytes, 3];
  const count = bytes.length / widths.reduce((sum, each) => sum + each);
  const [lane, start, length, name] = columnsOf(bytes, 0, count, widths);
  for (let row = 0; row < count; row++) start[row] += row && lane[row] === lane[row - 1] ? start[row - 1] : step.first_ns;
  return { lane, start, length, name };
}

/** The last slice before each that ends later; -1: there is none. @param {Slices} slices */
function outlastingOf({ lane, start, length }) {
  const found = new Int32Array(lane.length);
  for (let at = 0; at < found.length; at++) {
    let before = at - 1;
    const end = start[at] + length[at];
    while (before >= 0 && lane[before] === lane[at] && start[before] + length[before] <= end) before = found[before];
    found[at] = before;
  }
  return found;
}

/** By the lanes of the step. @type {WeakMap<object, Promise<LaneData>>} */
const loadedLanes = new WeakMap();

/** What the lanes of a step show, loaded once; what has failed is tried again. @param {Step} step @param {number} place @returns {Promise<LaneData>} */
export function loadLanes(step, place) {
  let found = loadedLanes.get(step.lanes);
  if (!found) {
    found = Promise.all([drawn(step, place, "bins"), loadSlices(step, place)]).then(([bins, slices]) => {
      const first = new Uint32Array(step.lanes.length + 1);
      for (const lane of slices.lane) first[lane + 1]++;
      for (let lane = 0; lane < step.lanes.length; lane++) first[lane + 1] += first[lane];
      return { bins, slices, first, outlasting: outlastingOf(slices) };
    });
    loadedLanes.set(step.lanes, found);
    found.catch(() => loadedLanes.delete(step.lanes));
  }
  return found;
}

/** The rows from which the page answers about parts of a step whose `rows` say what they are.
 * @param {import("./part/rows.js").RowsInfo} info @param {number} place */
export async function loadRows(info, place) {
  return rowsOf(info, await island(`rows-${place}`));
}
