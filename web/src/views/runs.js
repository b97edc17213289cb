// The runs of a folder: a list that is searched and sorted, how they developed, and which to open or to compare.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { grouped, printable } from "../numbers.js";
import { ask } from "../server.js";
import { open } from "../state.js";
import { AnswerTable, pattern } from "../table.js";

/** @typedef {import("../server.js").Run} Run */
/** @typedef {{length_ns: number, busy_ns: number, busy_share: number | null, kernels: number, cause: string, losses: number,
 *   simulated: boolean, rank: number | null, unavailable: string | null}} Figures */

/** @type {[string, string, string][]} */
const COLUMNS = [
  ["name", "text", "The file, as it is called within the folder."],
  ["kind", "text", "What its first bytes say that it is."],
  ["state", "text", "Why it cannot be opened, or what is to be known of it."],
  ["modified", "text", "When the file was changed last, in this machine's time."],
  ["size", "bytes", "Of the file."],
  ["length_ns", "ns", "Length of the step."],
  ["busy_share", "share", "Share of the step in which anything ran, of all devices together."],
  ["kernels", "count", "Kernels that ran."],
  ["most_idle", "text", "What most of the idle time is put down to."],
];

/** Figures of runs that are known, by id and version of the file. @type {Map<string, Figures | null>} */
const figures = new Map();

/** @param {Run} run */
function key(run) {
  return `${run.id} ${run.version}`;
}

/** Asks for the figures of one run after the other, the latest first; says how many are known. @param {Run[]} runs */
function useFigures(runs) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    let is = true;
    const missing = runs.filter((run) => !run.refused && !figures.has(key(run)))
      .sort((one, other) => other.modified_ms - one.modified_ms);
    (async () => {
      for (const run of missing) {
        if (!is) return;
        figures.set(key(run), await ask(`/api/runs/${run.id}/figures`).catch(() => null));
        if (is) setCount((before) => before + 1);
      }
    })();
    return () => { is = false; };
  }, [runs]);
  return count;
}

/** @param {Run} run */
function labels(run) {
  const known = figures.get(key(run));
  if (run.refused) return run.refused;
  if (!known) return "";
  return [
    known.unavailable && `not traced: ${known.unavailable}`,
    known.losses > 0 && "incomplete",
    known.simulated && "simulated",
    known.rank !== null && `rank ${known.rank}`,
  ].filter(Boolean).join(", ");
}

/** @param {number} ms */
function timeOf(ms) {
  if (!ms) return "";
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return at.toISOString().replace("T", " ").slice(0, 19);
}

/** The list as an answer, so that it is a table like all others. @param {Run[]} runs */
function answerOf(runs) {
  const known = runs.map((run) => figures.get(key(run)));
  const figure = (/** @type {keyof Figures} */ name) => known.map((each) => /** @type {any} */ (each?.[name] ?? null));
  return {
    question: "runs",
    definition: "Files that may be traces, and a few figures of those that can be read.",
    columns: COLUMNS.map(([name, unit, meaning]) => ({ name, unit, meaning })),
    values: [
      runs.map((run) => run.name), runs.map((run) => run.kind), runs.map(labels), runs.map((run) => timeOf(run.modified_ms)),
      runs.map((run) => run.bytes), figure("length_ns"), figure("busy_share"), figure("kernels"), figure("cause").map((each) => each ?? ""),
    ],
    rows: runs.length,
    totals: {},
    losses: [],
    notes: [],
    python: "steps = [collector.load(path) for path in paths]\nanalysis.devices(steps)",
    cli: "collector stats FILE... --question devices",
  };
}

/** @param {{listed: {runs: Run[], left_out: number}}} props */
export function Runs({ listed }) {
  const { runs } = listed;
  useFigures(runs);
  if (runs.length === 0) return html`<p class="state">There is no file here yet. It is listed as soon as one is written.</p>`;
  return html`
    <${AnswerTable} answer=${answerOf(runs)} title="Runs" onRow=${(/** @type {number} */ row) => open("overview", { runs: runs[row].id, step: "0", from: "", to: "" })}
      rowHelp="open this run" />
    ${listed.left_out > 0 && html`<p class="note">${grouped(listed.left_out)} more files are not listed.</p>`}
    <${Trend} runs=${runs} />
    <${Together} runs=${runs} />`;
}

const WIDE = 900;
const HIGH = 120;

/** How long the steps of all runs were, and how much of that was busy, in the order of their times. @param {{runs: Run[]}} props */
function Trend({ runs }) {
  const known = runs.filter((run) => figures.get(key(run))).sort((one, other) => one.modified_ms - other.modified_ms);
  if (known.length < 3) return null;
  const of = known.map((run) => /** @type {Figures} */ (figures.get(key(run))));
  const most = Math.max(...of.map((each) => each.length_ns), 1);
  const step = WIDE / known.length;
  return html`
    <h2>Trend</h2>
    <p class="definition">Length of each step, from the file that was changed first to the last one; the dark part is busy.</p>
    <svg class="trend" viewBox=${`0 0 ${WIDE} ${HIGH}`} role="img" aria-label="Length and busy time of each run; the table has the figures.">
      ${of.map((each, place) => html`
        <g class="run" key=${known[place].id}><title>${printable(known[place].name)}</title>
          <rect class="length" x=${place * step} width=${Math.max(step - 1, 0.5)} y=${HIGH - (each.length_ns / most) * HIGH} height=${(each.length_ns / most) * HIGH} />
          <rect class="busy" x=${place * step} width=${Math.max(step - 1, 0.5)} y=${HIGH - (each.length_ns * (each.busy_share ?? 0) / most) * HIGH}
            height=${(each.length_ns * (each.busy_share ?? 0) / most) * HIGH} /></g>`)}
    </svg>`;
}

/** The runs that a text means: the one with this name, or those whose names it matches as a regular expression.
 * @param {Run[]} runs @param {string} text */
export function meant(runs, text) {
  if (!text) return [];
  const readable = runs.filter((run) => !run.refused);
  const named = readable.filter((run) => run.name === text);
  const expression = pattern(text);
  return named.length || !expression ? named : readable.filter((run) => expression.test(run.name));
}

/** Several runs on one page, or some compared with others. @param {{runs: Run[]}} props */
function Together({ runs }) {
  const [before, setBefore] = useState("");
  const [now, setNow] = useState("");
  const [first, second] = [meant(runs, before), meant(runs, now)];
  const field = (/** @type {string} */ label, /** @type {string} */ value, /** @type {(text: string) => void} */ set, /** @type {Run[]} */ found) => html`
    <label>${label} <input type="text" list="runs" value=${value} placeholder="name or regular expression"
      onInput=${(/** @type {any} */ event) => set(event.target.value)} /> <small>${value ? `${grouped(found.length)} runs` : ""}</small></label>`;
  const show = (/** @type {string} */ view, /** @type {Run[]} */ chosen, /** @type {number} */ count) =>
    open(view, { runs: chosen.map((run) => run.id).join(","), before: count ? String(count) : "", step: "0", from: "", to: "" });
  return html`
    <h2>Several runs</h2>
    <p class="definition">Runs on one page, as steps or ranks of one program; or what changed from some to others.</p>
    <datalist id="runs">${runs.filter((run) => !run.refused).map((run) => html`<option key=${run.id} value=${run.name}></option>`)}</datalist>
    <div class="together">
      ${field("runs, or before", before, setBefore, first)}
      ${field("now", now, setNow, second)}
      <button type="button" disabled=${first.length < 1 || now !== ""} onClick=${() => show("overview", first, 0)}>open together</button>
      <button type="button" disabled=${first.length < 1 || second.length < 1}
        onClick=${() => show("compare", [...first, ...second], first.length)}>compare</button>
    </div>`;
}
