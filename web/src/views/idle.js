// Where the devices were idle, and why: sums, and each gap; a click on a gap chooses its window.
import { html } from "htm/preact";
import { Lanes } from "../lanes.js";
import { focusLanes } from "../lanes_focus.js";
import { timeText } from "../numbers.js";
import { chosenWindow, chooseWindow } from "../state.js";
import { AnswerTable, largestOf } from "../table.js";
import { around, inWindow, timesOf } from "../window.js";
import { turned } from "./overview.js";

/** @param {import("../views.js").Shown} props */
export function Idle({ step, place }) {
  const { idle, idle_ops: ops } = step.answers;
  const { idle_gaps: gaps } = step.listed;
  const part = chosenWindow.value;
  const show = (/** @type {number} */ row) => {
    const times = timesOf(gaps, row);
    if (!times) return;
    chooseWindow(around(step, times.start, times.end));
    document.querySelector(".lanes")?.scrollIntoView({ block: "nearest" });
    focusLanes({ preventScroll: true }); // the rows are others soon, and the one that had the focus may be gone
  };
  return html`
    <${AnswerTable} answer=${turned(idle)} title="Causes" least part=${part} />
    ${Number(idle.totals.tracer_ns) > 0 && html`<p class="note">CUPTI itself ran for ${timeText(Number(idle.totals.tracer_ns))} of the idle time: column tracer of the gaps.</p>`}
    <${Lanes} step=${step} place=${place} />
    ${ops && html`<${AnswerTable} answer=${largestOf(ops)} title="By annotation" least part=${part} />`}
    ${gaps && html`<${AnswerTable} answer=${gaps} title="Gaps" isDefined=${false} kept=${inWindow(gaps, part)} part=${part} onRow=${show} rowHelp="show this gap" />`}`;
}
