// The step at a glance: one sentence, the devices, what took the time, why they were idle, what to look at.
import { html } from "htm/preact";
import { Lanes } from "../lanes.js";
import { grouped, printable } from "../numbers.js";
import { address, chosenWindow } from "../state.js";
import { FindingList } from "./account.js";
import { AnswerTable, largestOf } from "../table.js";
import { aboutWindow } from "../window.js";

const LONGEST_PATH = 60;
const MOST_STREAMS = 8;
const WORK = ["compute_ns", "communication_ns", "copy_ns", "graph_ns"];

/** Whether a figure is above 0 in any row. @param {import("../provider.js").Answer} answer @param {string} name */
function happened(answer, name) {
  return answer.values[answer.columns.findIndex((each) => each.name === name)]?.some((value) => value !== 0);
}

/** @param {string} view @param {string} text */
function more(view, text) {
  return html`<p><a href=${address(view)}>${text}</a></p>`;
}

/** A recording in which no device did anything: why that may be, and what to do.
 * @param {{step: import("../provider.js").Step}} props */
function Nothing({ step }) {
  const host = step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  return html`
    <p class="verdict">${printable(step.verdict)}</p>
    ${step.unavailable ? html`
      <p>The program ran untraced: ${printable(step.unavailable)}.</p>
      <p>To find the cause, run <code>collector info</code> on the same machine, in the same environment; with
        <code>collector.trace(…, strict=True)</code> the program stops with the error instead of running untraced.</p>`
      : step.nothing && html`<p>${printable(`${step.nothing.charAt(0).toUpperCase()}${step.nothing.slice(1)}.`)}</p>`}
    ${host > 0 && html`<p>The file holds ${grouped(host)} annotations and calls of the host: <a href=${address("timeline")}>show them</a>.</p>`}`;
}

/** @param {import("../views.js").Shown} props */
export function Overview({ step, place }) {
  const { devices, idle, ops } = step.answers;
  const kernels = step.answers["kernels/name"];
  const part = chosenWindow.value;
  if (step.whole.devices.rows === 0) return html`<${Nothing} step=${step} />`;
  /** What the rest of the view is about, where an answer is not: not all can be had of a window. @param {import("../provider.js").Answer} answer */
  const otherThan = (answer) => (devices.part && !answer.part ? part : null);
  const drawn = step.lanes.filter((lane) => lane.kind === "stream").length > MOST_STREAMS ? ["device"] : ["device", "stream"];
  return html`
    <p class="verdict">${printable(step.verdict)}</p>
    ${step.lanes.length > 0 && html`<${Lanes} step=${step} place=${place} kinds=${drawn} hint=${false} />`}
    ${part && html`<p class="note">${aboutOverview(devices, part)}</p>`}
    ${part && !happened(devices, "busy_ns") && html`<p>Nothing ran on any device in the chosen window.</p>`}
    <div class="cards">
      <div><${AnswerTable} answer=${withModels(narrowed(devices, ["device_id", "busy_ns", "idle_ns", "busy_share", ...WORK.filter((name) => happened(devices, name))]), step)} title="Devices" least /></div>
      ${kernels && html`<div><${AnswerTable} answer=${narrowed(kernels, ["name", "count", "total_ns", "share"])} title="Kernels that took most time" least part=${otherThan(kernels)} />${more("kernels", "all kernels")}</div>`}
      ${idle && html`<div><${AnswerTable} answer=${turned(idle)} title="Why the devices were idle" least part=${otherThan(idle)} />${more("idle", "each gap")}</div>`}
      ${ops && html`<div><${AnswerTable} answer=${innermost(ops)} title="GPU time by annotation" least part=${otherThan(ops)} />${more("ops", "all annotations")}</div>`}
    </div>
    ${step.findings.length > 0 && html`
      <h2>Look at this first</h2>
      <${FindingList} step=${step} findings=${step.findings.slice(0, 3)} />
      ${more("findings", "all findings and their evidence")}`}`;
}

/** What the overview is about while a window is chosen. @param {import("../provider.js").Answer} devices
 * @param {{start: number, end: number}} part */
function aboutOverview(devices, part) {
  return `${aboutWindow(devices, part, null)}${devices.part ? " The sentence above and the findings are about the whole step." : ""}`;
}

/** An answer with these of its columns. @param {import("../provider.js").Answer} answer @param {string[]} names */
function narrowed(answer, names) {
  const places = names.map((name) => answer.columns.findIndex((each) => each.name === name)).filter((each) => each >= 0);
  return { ...answer, columns: places.map((each) => answer.columns[each]), values: places.map((each) => answer.values[each]) };
}

/** An answer about devices, and their models. @param {import("../provider.js").Answer} answer @param {import("../provider.js").Step} step */
function withModels(answer, { models }) {
  const known = new Map(models);
  const column = { name: "model", unit: "text", meaning: "Model of the device; empty: not known." };
  return { ...answer, columns: [...answer.columns, column], values: [...answer.values, answer.values[0].map((device) => known.get(Number(device)) ?? "")] };
}

/** A path that fits: of a long one the last parts. @param {string} path */
function shortened(path) {
  let rest = path;
  while (rest.length > LONGEST_PATH && rest.includes("/")) rest = rest.slice(rest.indexOf("/") + 1);
  return rest === path ? path : `…/${rest}`;
}

/** The annotations with the most GPU time right under them, the longest first. @param {import("../provider.js").Answer} ops */
function innermost(ops) {
  const taken = narrowed(largestOf(ops), ["path", "self_activities", "self_ns"]);
  return { ...taken, columns: taken.columns.map((each) => (each.name === "path" ? { ...each, shortened } : each)) };
}

/** The causes of idle time as rows, the largest first. @param {import("../provider.js").Answer} idle */
export function turned(idle) {
  const causes = idle.columns.filter((each) => each.unit === "ns" && !["window_ns", "idle_ns", "tracer_ns"].includes(each.name));
  const rows = causes
    .map((each) => ({ name: each.name.replace(/_ns$/, "").replaceAll("_", " "), meaning: each.meaning, total: idle.totals[each.name] }))
    .filter((each) => Number(each.total) > 0)
    .sort((one, other) => Number(other.total) - Number(one.total));
  return {
    ...idle,
    columns: [
      { name: "cause", unit: "text", meaning: "Reason why the next activity did not start earlier." },
      { name: "idle_ns", unit: "ns", meaning: "Idle time of all devices with this cause." },
      { name: "meaning", unit: "text", meaning: "Definition of the cause." },
    ],
    values: [rows.map((each) => each.name), rows.map((each) => each.total), rows.map((each) => each.meaning)],
    rows: rows.length,
    totals: {},
  };
}
