// What changed from some steps to others: the step as a whole, and what it is divided into, the largest change first.
import { html } from "htm/preact";
import { printable, shown } from "../numbers.js";
import { state } from "../state.js";
import { AnswerTable, heading } from "../table.js";
import { Choice } from "./tables.js";

/** @typedef {import("../provider.js").Answer} Answer */

/** @param {import("../views.js").Shown} props */
export function Compare({ page }) {
  const { compare } = page;
  if (!compare) return html`<p class="state">These steps cannot be compared: ${printable(page.refused.compare)}</p>`;
  const ways = Object.keys(compare.answers).filter((each) => each !== "step");
  const by = ways.includes(state.value.by) ? state.value.by : ways[0];
  const whole = compare.answers.step;
  return html`
    <dl class="sides">
      ${/** @type {const} */ (["before", "now"]).map((side) => html`
        <div><dt>${side}</dt><dd>${printable(compare[side].name)}</dd></div>`)}
    </dl>
    ${whole && html`<p class="verdict">${sentence(whole)}</p>`}
    <p class="definition">Beside each ratio: its interval, from half as long to twice as long; the grey line is no change.</p>
    <${Choice} label="by" of=${ways} chosen=${by} text=${heading} />
    <${AnswerTable} key=${by} answer=${compare.answers[by]} title=${`What changed, by ${heading(by)}`} />`;
}

/** The answer about whole steps in one sentence, with its own figures. @param {Answer} answer */
function sentence(answer) {
  const of = (/** @type {string} */ name) => {
    const place = answer.columns.findIndex((each) => each.name === name);
    return shown(answer.values[place]?.[0] ?? null, answer.columns[place]?.unit);
  };
  const between = of("low") && of("high") ? `, with an interval from ${of("low")} to ${of("high")}` : "";
  return `A step took ${of("before_ns")} before and takes ${of("now_ns")} now, ${of("ratio")} times as long${between}: ${
    of("verdict") || "not tested"}.`;
}
