// How long each step took, which is an outlier, and why; a click on a step opens it.
import { html } from "htm/preact";
import { open } from "../state.js";
import { AnswerTable } from "../table.js";

/** @param {import("../views.js").Shown} props */
export function Steps({ page, step, place }) {
  const together = page.answers.steps;
  const answer = together ?? step.answers.steps;
  const files = answer.values[answer.columns.findIndex((each) => each.name === "step")];
  const show = (/** @type {number} */ row) => {
    const file = together ? Number(files[row]) : place;
    // A file's steps are in the answer in the order of their marks.
    const [from, to] = page.steps[file].marks[row - files.indexOf(files[row])];
    const isWhole = page.steps[file].marks.length === 1;
    open("overview", { step: String(file), from: isWhole ? "" : String(from), to: isWhole ? "" : String(to) });
  };
  return html`<${AnswerTable} answer=${answer} title="Steps" onRow=${show} rowHelp="open this step" />`;
}
