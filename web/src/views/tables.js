// The answer to one question as a table; of several questions, or ways to count its rows, the chosen one.
import { html } from "htm/preact";
import { AnswerTable, heading } from "../table.js";
import { chosenWindow, choose, state } from "../state.js";
import { inWindow } from "../window.js";

/** @param {import("../views.js").Shown & {keys: string[]}} props */
export function Tables({ page, step, keys }) {
  const answers = { ...step.answers, ...page.answers };
  const key = keys.includes(state.value.by) ? state.value.by : keys[0];
  const answer = answers[key];
  const part = chosenWindow.value;
  const kept = inWindow(answer, part);
  const questions = [...new Set(keys.map((each) => each.split("/")[0]))];
  const chosen = key.split("/")[0];
  const ways = keys.filter((each) => each.split("/")[0] === chosen);
  return html`
    ${questions.length > 1 && html`<${Choice} label="" of=${questions.map((each) => keys.find((one) => one.split("/")[0] === each))}
      chosen=${ways[0]} text=${(/** @type {string} */ each) => heading(each.split("/")[0])} />`}
    ${ways.length > 1 && html`<${Choice} label="by" of=${ways} chosen=${key} text=${(/** @type {string} */ each) => heading(each.split("/")[1])} />`}
    <${AnswerTable} key=${key} answer=${answer} title=${heading(answer.question)} kept=${kept}
      note=${part && !kept ? "Of the whole step, whatever window is chosen." : ""} />`;
}

/** @param {{label: string, of: string[], chosen: string, text: (key: string) => string}} props */
function Choice({ label, of, chosen, text }) {
  return html`
    <div class="choice">${label && html`<span>${label}</span>`}${of.map((key) => html`
      <button class="quiet" aria-pressed=${key === chosen} onClick=${() => choose({ by: key, sort: "", cols: "", q: "", rows: "" })}>${text(key)}</button>`)}</div>`;
}
