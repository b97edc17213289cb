// The notes on answers about a part of a step (collector/analysis/asked.py), of the sentences in collector/web/part_notes.py.
import { counted } from "../numbers.js";
import { COMMUNICATION, COMPUTE, COPY, GRAPH, MEMSET } from "./rows.js";
import { oddOperationsIn } from "./memory.js";
import { numCutSteps } from "./memory_growth.js";

/** @typedef {import("./answers.js").Asked} Asked */
/** @typedef {{questions: Record<string, {tables: string[], counts_graphs: boolean, otherwise: string}>,
 *   missing: Record<string, string>, graphs_counted: string, graphs_not_counted: string, cut_steps: string,
 *   tracing_cost: string, losses: import("./losses.js").PartLosses}} PartNotes */

/** @type {Record<string, number[]>} */
const CLASSES = { kernels: [COMPUTE, COMMUNICATION], memcpys: [COPY], memsets: [MEMSET] };

/** Whether the part has rows of a table. @param {Asked} asked @param {string} table */
function hasRows(asked, table) {
  const { rows: { work }, cut } = asked;
  if (table in CLASSES) return cut.work.some((row) => CLASSES[table].includes(work.work_class[row]));
  if (table === "memory_operations") return cut.memory.length + oddOperationsIn(asked) > 0;
  const kept = { api_calls: cut.calls, annotations: cut.annotations, overheads: cut.overheads };
  return kept[/** @type {keyof typeof kept} */ (table)].length > 0;
}

/** @param {Asked} asked @param {string} key of the answer @param {number} numRows of the answer @returns {string[]} */
export function notesOn(asked, key, numRows) {
  const { info: { notes }, rows: { work }, cut } = asked;
  const { tables, counts_graphs: countsGraphs, otherwise } = notes.questions[key];
  const found = [];
  const numCut = key.startsWith("memory_growth/") ? numCutSteps(asked, key) : 0;
  if (numCut) found.push(counted(notes.cut_steps, numCut));
  if (key === "tracing_cost") found.push(notes.tracing_cost);
  const graphs = cut.work.filter((row) => work.work_class[row] === GRAPH).length;
  if (graphs && tables.some((table) => table in CLASSES)) found.push(counted(countsGraphs ? notes.graphs_counted : notes.graphs_not_counted, graphs));
  if (!numRows) {
    const isMissing = !(graphs && countsGraphs) && !tables.some((table) => hasRows(asked, table));
    found.push(isMissing ? notes.missing[tables.join()] : otherwise);
  }
  return [...new Set(found.filter(Boolean))];
}
