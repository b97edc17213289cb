// What to look at first, and how far all of it can be trusted.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { loadLicences } from "../provider.js";
import { grouped, printable } from "../numbers.js";
import { AnswerTable } from "../table.js";

/** @param {import("../views.js").Shown} props */
export function Findings({ step }) {
  if (step.findings.length === 0) return html`<p class="state">Nothing to advise.</p>`;
  return html`<ol class="findings">${step.findings.map((each) => html`
    <li class=${each.severity}>
      <p><strong>${each.severity}</strong> ${printable(each.line)}</p>
      ${each.evidence.length > 0 && html`
        <details><summary>evidence</summary><ul>${each.evidence.map((line) => html`<li>${printable(line)}</li>`)}</ul></details>`}
    </li>`)}</ol>`;
}

const HOLDS = [
  "Holds: names of kernels, annotations and CUDA functions; times, sizes and launch shapes; numbers of devices, streams and threads; the name of the file.",
  "Does not hold: environment variables, command lines, host names, user names, folders.",
];

/** @param {import("../views.js").Shown} props */
export function Trust({ step }) {
  return html`
    <h2>What was lost</h2>
    ${step.losses.length === 0
      ? html`<p>Nothing: every launch that was seen has what it launched, and no record was dropped.</p>`
      : html`<ul>${step.losses.map((loss) => html`<li>${printable(loss)}</li>`)}</ul>`}
    ${step.answers.tracing_cost && html`<${AnswerTable} answer=${step.answers.tracing_cost} title="What tracing cost" />`}
    ${step.answers.ledger
      ? html`<${AnswerTable} answer=${step.answers.ledger} title="The ledger" />`
      : html`
        <h2>The ledger</h2>
        <table class="small"><tbody>${step.ledger.map(([name, value]) => html`
          <tr><th scope="row">${name.replaceAll("_", " ")}</th><td class="figure">${grouped(String(value))}</td></tr>`)}</tbody></table>`}
    <h2>What this file says of you</h2>
    ${HOLDS.map((line) => html`<p>${line}</p>`)}
    <${Licences} />`;
}

function Licences() {
  const [text, setText] = useState("");
  return html`
    <details class="same" onToggle=${() => text || loadLicences().then(setText)}>
      <summary>licences of the libraries in this page</summary>
      <pre>${text}</pre>
    </details>`;
}
