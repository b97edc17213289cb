// What to look at first, and how far all of it can be trusted.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { around } from "../window.js";
import { exact, printable, timeText } from "../numbers.js";
import { viewOf } from "../places.js";
import { loadLicences } from "../provider.js";
import { address, chosenWindow } from "../state.js";
import { AnswerTable } from "../table.js";

/** @param {{step: import("../provider.js").Step, finding: import("../provider.js").Finding}} props */
function Links({ step, finding }) {
  const view = viewOf(finding.rows);
  const by = finding.rows.includes("/") && view !== "trust" ? finding.rows : "";
  const sort = finding.cause && `${finding.cause}_ns.desc`;
  const gap = finding.gap && around(step, ...finding.gap);
  return html`
    <a href=${address(view, { from: "", to: "", by, sort })}>${view === "idle" ? "its gaps" : "its rows"}</a>
    ${gap && html` · <a href=${address(view, { from: String(Math.floor(gap.start)), to: String(Math.ceil(gap.end)) })}>the longest of them</a>`}`;
}

/** @param {{step: import("../provider.js").Step, findings: import("../provider.js").Finding[]}} props */
export function FindingList({ step, findings }) {
  return html`<ol class="findings">${findings.map((each) => html`
    <li class=${each.severity}>
      <p><strong class="severity">${each.severity}</strong> ${printable(each.line)} <${Links} step=${step} finding=${each} /></p>
      ${each.evidence.length > 0 && html`
        <details class="same"><summary>evidence</summary><ul>${each.evidence.map((line) => html`<li>${printable(line)}</li>`)}</ul></details>`}
    </li>`)}</ol>`;
}

/** @param {import("../views.js").Shown} props */
export function Findings({ step }) {
  if (step.findings.length > 0) return html`<h2>Findings</h2><${FindingList} step=${step} findings=${step.findings} />`;
  return html`<p class="state">${step.whole.devices.rows === 0
    ? `There is nothing to advise on. ${step.verdict}`
    : "Nothing to advise: no checker found anything."}</p>`;
}

const HOLDS = [
  "Holds: names of kernels, annotations and CUDA functions; times, sizes and launch shapes; numbers of devices, streams and threads, models of GPUs, versions of CUDA and CUPTI, and names of threads; the name of the file.",
  "Does not hold: environment variables, command lines, host names, user names, folders.",
];

const MOST_MOMENTS = 12;

/** When something was lost, as far as that is known, with links to the moments on the lanes.
 * @param {import("../provider.js").Step} step @param {string} loss */
function moments(step, loss) {
  const figures = step.whole["ledger/figure"];
  const of = (/** @type {string} */ name) => figures?.values[figures.columns.findIndex((each) => each.name === name)];
  const times = step.loss_times[String(of("figure")?.[of("loss")?.indexOf(loss) ?? -1])];
  if (!times) return "";
  const link = (/** @type {number} */ at) => {
    const room = Math.ceil(step.length_ns / 50);
    const part = { from: String(Math.max(0, at - room)), to: String(Math.min(step.length_ns, at + room)) };
    return html` <a href=${address("timeline", part)} title=${exact(at, "ns")}>${timeText(at)}</a>`;
  };
  return html`, at${times.slice(0, MOST_MOMENTS).map(link)}${times.length > MOST_MOMENTS && " and later"}`;
}

/** @param {import("../views.js").Shown} props */
export function Trust({ step }) {
  // The losses count the missing parts of the file as well; the remark above every view says where they are.
  const lost = step.losses.length > 0 ? step.losses : step.warning ? [step.warning] : [];
  const { tracing_cost: cost, code_loading: loading } = step.answers;
  const { "ledger/figure": figures, "ledger/table": tables } = step.whole;
  return html`
    ${chosenWindow.value && html`<p class="note">Losses and the ledger are about the whole step, whatever window is chosen.</p>`}
    <h2>What was lost</h2>
    ${step.unavailable ? html`<p>Everything: the program ran untraced. ${printable(step.unavailable)}</p>`
      : lost.length === 0
      ? html`<p>Nothing: every launch that was seen has what it launched, and no record was dropped.</p>`
      : html`
        <ul>${lost.map((loss) => html`<li>${printable(loss)}${moments(step, loss)}</li>`)}</ul>
        <p>Sums and counts of this page are of what is left: they may be too small, and gaps may be those of lost work.
          ${Object.keys(step.loss_times).length > 0 && " Of each hundredth of the step the first time of a loss is shown."}</p>`}
    ${cost
      ? html`<${AnswerTable} answer=${cost} title="What tracing cost" plain part=${chosenWindow.value} />`
      : html`<h2>What tracing cost</h2><p>Not known: the recording has no records of the tracer's own time.</p>`}
    ${loading && html`<${AnswerTable} answer=${loading} title="What compiling and loading code took" plain part=${chosenWindow.value} />`}
    ${figures && html`<${AnswerTable} answer=${figures} title="The ledger" plain />`}
    ${tables && html`<${AnswerTable} answer=${tables} title="Rows of each table" plain />`}
    ${step.recorded_with.length > 0 && html`
      <h2>How it was recorded</h2>
      <dl class="sides">${step.recorded_with.map(([name, text]) => html`<div><dt>${name}</dt><dd>${printable(text)}</dd></div>`)}</dl>`}
    <h2>What this file says of you</h2>
    ${HOLDS.map((line) => html`<p>${line}</p>`)}
    ${(step.label || step.git_revision) && html`<p>Holds as well, as it was asked to: ${step.label && `the label “${printable(step.label)}”`}${
      step.label && step.git_revision && ", "}${step.git_revision && `the git revision ${printable(step.git_revision)}`}.</p>`}
    <${Licences} />`;
}

function Licences() {
  const [text, setText] = useState("");
  const [why, setWhy] = useState("");
  const load = () => loadLicences().then(setText, (error) => setWhy(error.message));
  return html`
    <details class="same" onToggle=${() => text || load()}>
      <summary>licences of the libraries in this page</summary>
      ${text ? html`<pre>${text}</pre>` : html`<p role=${why ? "alert" : "status"}>${why ? printable(why) : "Loading …"}</p>`}
    </details>`;
}
