// How long each step took, which is an outlier, and why; a click on a step opens it. These are whole steps, whatever window
// is chosen: of each its mark is known.
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import { Chart } from "../chart.js";
import { grouped, printable, shown } from "../numbers.js";
import { chosenWindow, open, stepAt } from "../state.js";
import { AnswerTable } from "../table.js";

/** @param {import("../views.js").Shown} props */
export function Steps({ page, step, place }) {
  const together = page.answers.steps;
  const answer = together ? withFiles(together, namesOf(page.steps)) : step.whole.steps;
  const files = (together ?? answer).values[answer.columns.findIndex((each) => each.name === (together ? "file" : "step"))];
  const of = (/** @type {string} */ name) => answer.values[answer.columns.findIndex((each) => each.name === name)];
  const show = (/** @type {number} */ row) => {
    const file = together ? Number(files[row]) : place;
    // A file's steps are in the answer in the order of their marks.
    const [from, to] = page.steps[file].marks[row - files.indexOf(files[row])];
    const isWhole = page.steps[file].marks.length === 1;
    open("overview", { step: stepAt(page, file), from: isWhole ? "" : String(from), to: isWhole ? "" : String(to) });
  };
  const [lengths, busy] = [of("window_ns"), of("busy_ns")];
  const x = useMemo(() => lengths.map((_, row) => row), [together ?? answer]);
  const series = useMemo(() => [
    { name: "length", values: lengths.map(Number), is: /** @type {const} */ ("length") },
    { name: "busy", values: busy.map(Number), is: /** @type {const} */ ("busy") },
  ], [together ?? answer]);
  const name = (/** @type {number} */ row) => [together && of("file")[row], of("name")[row]].filter(Boolean).join(" ") || `step ${row}`;
  return html`
    ${lengths.length > 1 && html`
      <h2>Durations</h2>
      <p class="definition">${answer.rows > lengths.length ? `The first ${grouped(lengths.length)} of ${grouped(answer.rows)} steps` : "The steps"} in the given order, from 0; the lower part of each is busy.</p>
      <${Chart} x=${x} series=${series} unit="ns" label="Length and busy time of each step." onPick=${show}
        at=${(/** @type {number} */ row) => html`<strong>${printable(name(row))}</strong> ${shown(lengths[row], "ns")}, busy ${shown(busy[row], "ns")}${
          of("verdict")[row] ? `, ${of("verdict")[row]}` : ""}`} />`}
    <${AnswerTable} answer=${answer} title="Steps" part=${together ? null : chosenWindow.value}
      onRow=${show} rowHelp="open this step" />`;
}

/** The names of files, with their numbers where two are called the same. @param {import("../provider.js").Step[]} steps */
function namesOf(steps) {
  const names = steps.map((each) => each.name);
  return new Set(names).size === names.length ? names : names.map((each, place) => `${place}: ${each}`);
}

/** An answer about several files with their names instead of their numbers.
 * @param {import("../provider.js").Answer} answer @param {string[]} names */
export function withFiles(answer, names) {
  const at = answer.columns.findIndex((each) => each.name === "step");
  if (at < 0) return answer;
  return {
    ...answer,
    columns: answer.columns.map((each, place) => (place === at ? { name: "file", unit: "text", meaning: "File of the step." } : each)),
    values: answer.values.map((each, place) => (place === at ? each.map((number) => names[Number(number)] ?? String(number)) : each)),
  };
}
