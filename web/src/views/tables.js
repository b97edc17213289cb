// The answer to one question as a table; of several questions, or ways to count its rows, the chosen one.
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import { hasAllSlices, kernelsWithin } from "../kernels_within.js";
import { focusLanes } from "../lanes_focus.js";
import { useLaneData } from "../lane_data.js";
import { printable } from "../numbers.js";
import { Ready } from "../ready.js";
import { AnswerTable, heading, titled } from "../table.js";
import { chosenWindow, OF_A_TABLE, open, state, turnTo } from "../state.js";
import { around, inWindow, timesOf } from "../window.js";

/** @typedef {import("../provider.js").Answer} Answer */

/** What kernels are counted by where the page itself can sum up those of a window. @type {("name" | "stream")[]} */
const SUMMED = ["name", "stream"];

/** @param {import("../views.js").Shown & {keys: string[]}} props */
export function Tables({ page, step, place, keys }) {
  const key = keys.includes(state.value.by) ? state.value.by : keys[0];
  const questions = [...new Set(keys.map((each) => each.split("/")[0]))];
  const chosen = key.split("/")[0];
  const ways = keys.filter((each) => each.split("/")[0] === chosen);
  return html`
    ${questions.length > 1 && html`<${Choice} label="" of=${questions.map((each) => keys.find((one) => one.split("/")[0] === each))}
      chosen=${ways[0]} text=${(/** @type {string} */ each) => heading(each.split("/")[0])} />`}
    ${ways.length > 1 && html`<${Choice} label="by" of=${ways} chosen=${key} text=${(/** @type {string} */ each) => heading(each.split("/")[1])} />`}
    <${Ready} key=${key}><${Chosen} page=${page} step=${step} place=${place} of=${key} /></${Ready}>`;
}

/** The table of one answer. @param {import("../views.js").Shown & {of: string}} props */
function Chosen({ page, step, place, of: key }) {
  const answer = page.answers[key] ?? step.listed[key];
  const part = page.answers[key] ? null : chosenWindow.value;
  const kept = inWindow(answer, part);
  const by = SUMMED.find((each) => key === `kernels/${each}`);
  const { of: drawn, data } = useLaneData(step, place);
  const ofPart = useMemo(
    () => (part && by && !answer.part && data && drawn === step && hasAllSlices(step) ? kernelsWithin(answer, step, data.slices, part, by) : null),
    [answer, data, part?.start, part?.end]);
  return html`<${Placed} answer=${ofPart ?? answer} step=${step} title=${titled(answer.question)} kept=${kept} part=${part} />`;
}

/** A table whose rows lead to where they are on the lanes, or to the longest of what they count, as far as that is known.
 * @param {{answer: Answer, step: import("../provider.js").Step, title?: string, kept: Set<number> | null,
 *   part: {start: number, end: number} | null}} props */
export function Placed({ answer, step, title, kept, part }) {
  const [starts, ends] = answer.longest ?? [];
  const hasTimes = timesOf(answer, 0) !== null;
  const show = (/** @type {number} */ row) => {
    const times = timesOf(answer, row) ?? { start: starts[row], end: ends[row] };
    const found = around(step, times.start, times.end);
    open("timeline", { from: String(Math.floor(found.start)), to: String(Math.ceil(found.end)) });
    focusLanes({ preventScroll: true }); // the row that had the focus is gone, and the view is shown from its top
  };
  const isShown = step.lanes.length > 0 && (hasTimes || starts !== undefined);
  // Those of the step are on every view behind the badge; this answer may lack more.
  const losses = answer.losses.filter((each) => !step.losses.some((known) => each.endsWith(known)));
  return html`
    ${losses.map((each) => html`<p class="remark">Incomplete: ${printable(each)}</p>`)}
    <${AnswerTable} answer=${answer} title=${title} kept=${kept} part=${part}
      onRow=${isShown ? show : undefined} rowHelp=${hasTimes ? "show this on the timeline" : "show the longest of these on the timeline"} />`;
}

/** @param {{label: string, of: string[], chosen: string, text: (key: string) => string}} props */
export function Choice({ label, of, chosen, text }) {
  return html`
    <div class="choice">${label && html`<span>${label}</span>`}${of.map((key) => html`
      <button class="quiet" aria-pressed=${key === chosen} onClick=${() => turnTo({ ...OF_A_TABLE, by: key })}>${text(key)}</button>`)}</div>`;
}
