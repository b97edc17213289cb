// The runs of a folder: a list that is searched and sorted, how they developed, and which to open or to compare.
import { html } from "htm/preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Chart } from "../chart.js";
import { grouped, printable, shown } from "../numbers.js";
import { pattern } from "../pattern.js";
import { ask, NoAnswerError } from "../server.js";
import { open } from "../state.js";
import { AnswerTable } from "../table.js";

/** @typedef {import("../server.js").Run} Run */
/** @typedef {{length_ns: number, busy_ns: number, busy_share: number | null, kernels: number, cause: string, losses: number,
 *   simulated: boolean, label: string, git_revision: string, gpu: string, rank: number | null, unavailable: string | null}} Figures */

/** What tells runs apart and what they are about comes first: a narrow window shows these columns. @type {[string, string, string][]} */
const COLUMNS = [
  ["name", "text", "Path of the file within the folder."],
  ["label", "text", "Label of the run, which its user chose."],
  ["git_revision", "text", "Revision of the git repository of the program, if it was requested."],
  ["state", "text", "Reason why it cannot be opened, or a note about it."],
  ["length_ns", "ns", "Length of the step."],
  ["busy_share", "share", "Share of the step in which anything ran, over all devices."],
  ["idle_cause", "text", "Cause of the largest part of the idle time."],
  ["kernels", "count", "Number of kernels."],
  ["gpu", "text", "Models of the GPUs that worked."],
  ["kind", "text", "Format of the file, by its first bytes."],
  ["modified", "text", "Time of the last change of the file, in this machine's time zone."],
  ["size", "bytes", "Of the file."],
];
/** Columns of sentences, which are broken between words. */
const SENTENCES = ["state"];

/** Digits of a revision that tell it from others. */
const SHORT_REVISION = 12;

/** By id the figures of a run that came last, null where there are none, and the version of the file that they are about.
 * @type {Map<string, {version: string, found: Figures | null}>} */
const figures = new Map();

/** The figures of a run; of a file that has changed those before, until there are others. @param {Run} run */
function figuresOf(run) {
  return run.refused ? null : figures.get(run.id)?.found ?? null;
}

/** The ids of the rows of the list that are in view, from the top. */
function idsInView() {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("tr[data-id]")]);
  return rows.filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }).map((row) => row.dataset.id ?? "");
}

/** Asks for the figures of one run after the other, those in view first, then the latest; says how many are known.
 * @param {Run[]} runs @param {number} failures how often the server did not answer for a while */
function useFigures(runs, failures) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    let is = true;
    const missing = new Map(runs.filter((run) => !run.refused && figures.get(run.id)?.version !== run.version)
      .sort((one, other) => other.modified_ms - one.modified_ms).map((run) => [run.id, run.version]));
    (async () => {
      while (is && missing.size) {
        const [latest] = missing.keys();
        const id = idsInView().find((each) => missing.has(each)) ?? latest;
        const version = missing.get(id) ?? "";
        missing.delete(id);
        try {
          figures.set(id, { version, found: await ask(`/api/runs/${id}/figures`) });
        } catch (error) {
          if (error instanceof NoAnswerError) return;
          figures.set(id, { version, found: null });
        }
        if (is) setCount((before) => before + 1);
      }
    })();
    return () => { is = false; };
  }, [runs, failures]);
  return count;
}

/** @param {Run} run */
function stateOf(run) {
  const known = figuresOf(run);
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
  const known = runs.map(figuresOf);
  const figure = (/** @type {keyof Figures} */ name) => known.map((each) => /** @type {any} */ (each?.[name] ?? null));
  const text = (/** @type {"label" | "git_revision" | "gpu" | "cause"} */ name) => known.map((each) => each?.[name] ?? "");
  return {
    question: "runs",
    definition: "Files that may be traces, and a few figures of those that can be read.",
    columns: COLUMNS.map(([name, unit, meaning]) => ({ name, unit, meaning, inWords: SENTENCES.includes(name) })),
    values: [
      runs.map((run) => run.name), text("label"), text("git_revision").map((each) => each.slice(0, SHORT_REVISION)), runs.map(stateOf),
      figure("length_ns"), figure("busy_share"), text("cause"), figure("kernels"), text("gpu"),
      runs.map((run) => run.kind), runs.map((run) => timeOf(run.modified_ms)), runs.map((run) => run.bytes),
    ],
    rows: runs.length,
    totals: {},
    losses: [],
    notes: [],
    python: "steps = [collector.load(path) for path in paths]\nanalysis.devices(steps)",
    cli: "collector stats FILE... --question devices",
  };
}

/** @param {{listed: {runs: Run[], left_out: number}, failures: number}} props */
export function Runs({ listed, failures }) {
  const { runs } = listed;
  const count = useFigures(runs, failures);
  if (runs.length === 0) return html`<p class="state">There is no file here yet. It is listed as soon as one is written.</p>`;
  return html`
    <${AnswerTable} answer=${answerOf(runs)} title="Runs" ids=${runs.map((run) => run.id)} onRow=${(/** @type {number} */ row) => show(runs[row])}
      rowHelp="open this run" />
    ${listed.left_out > 0 && html`<p class="note">${grouped(listed.left_out)} more files are not listed.</p>`}
    <${Trend} runs=${runs} count=${count} />
    <${Together} runs=${runs} />`;
}

/** How long the steps of all runs were, and how much of that was busy, in the order of their times. @param {{runs: Run[], count: number}} props */
function Trend({ runs, count }) {
  const { known, ids, x, series } = useMemo(() => {
    const found = runs.filter(figuresOf).sort((one, other) => one.modified_ms - other.modified_ms);
    const of = found.map((run) => /** @type {Figures} */ (figuresOf(run)));
    return {
      known: found,
      ids: found.map((run) => run.id),
      x: found.map((_, place) => place),
      series: [
        { name: "length", values: of.map((each) => each.length_ns), is: /** @type {const} */ ("length") },
        { name: "busy", values: of.map((each) => each.length_ns * (each.busy_share ?? 0)), is: /** @type {const} */ ("busy") },
      ],
    };
  }, [runs, count]);
  if (known.length < 3) return null;
  return html`
    <h2>Trend</h2>
    <p class="definition">Length of each step, from the file that was changed first to the last one; its lower part is busy.</p>
    <${Chart} x=${x} ids=${ids} series=${series} unit="ns" label="Length and busy time of each run." onPick=${(/** @type {number} */ place) => show(known[place])}
      at=${(/** @type {number} */ place) => html`<strong>${printable(known[place].name)}</strong> ${shown(series[0].values[place], "ns")}, busy ${
        shown(figuresOf(known[place])?.busy_share ?? null, "share")}`} />`;
}

/** @param {Run} run */
function show(run) {
  open("overview", { runs: run.id, before: "", step: "", from: "", to: "" });
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
      onInput=${(/** @type {any} */ event) => set(event.target.value)} /> <small>${value ? `${grouped(found.length)} run${found.length === 1 ? "" : "s"}` : ""}</small></label>`;
  const show = (/** @type {string} */ view, /** @type {Run[]} */ chosen, /** @type {number} */ count) =>
    open(view, { runs: chosen.map((run) => run.id).join(","), before: count ? String(count) : "", step: "", from: "", to: "" });
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
