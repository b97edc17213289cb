// Where the devices were idle, and why: sums, and each gap; a click on a gap chooses its window.
import { html } from "htm/preact";
import { Lanes } from "../lanes.js";
import { chosenWindow, chooseWindow } from "../state.js";
import { AnswerTable } from "../table.js";
import { inWindow, timesOf } from "../window.js";
import { turned } from "./overview.js";

/** @param {import("../views.js").Shown} props */
export function Idle({ step, place }) {
  const { idle, idle_gaps: gaps } = step.answers;
  const show = (/** @type {number} */ row) => {
    const times = timesOf(gaps, row);
    if (!times) return;
    const around = (times.end - times.start) / 2;
    chooseWindow({ start: Math.max(0, times.start - around), end: Math.min(step.length_ns, times.end + around) });
  };
  return html`
    <${AnswerTable} answer=${turned(idle)} title="Causes" least />
    <${Lanes} step=${step} place=${place} />
    ${gaps && html`<${AnswerTable} answer=${gaps} title="Gaps" kept=${inWindow(gaps, chosenWindow.value)} onRow=${show} rowHelp="show this gap" />`}`;
}
