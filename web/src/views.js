// The views, in the order of their links. Each says whether there is anything for it to show.
import { Findings, Trust } from "./views/account.js";
import { Compare } from "./views/compare.js";
import { Idle } from "./views/idle.js";
import { Icicle } from "./views/icicle.js";
import { MemoryCurves } from "./views/memory.js";
import { Overview } from "./views/overview.js";
import { Steps } from "./views/steps.js";
import { Tables } from "./views/tables.js";
import { Timeline } from "./views/timeline.js";
import { html } from "htm/preact";
import { printable } from "./numbers.js";
import { OTHERS, QUESTIONS, questionOf, viewOf } from "./places.js";

/** @typedef {import("./provider.js").Page} Page */
/** @typedef {import("./provider.js").Step} Step */
/** @typedef {{page: Page, step: Step, place: number}} Shown */
/** @typedef {{name: string, title: string, is: (page: Page, step: Step) => boolean, show: (props: any) => any}} View */

/** Tables of the answers that a view shows. @param {string} name @param {string} title
 * @param {any} above what stands above them @returns {View} */
function tables(name, title, above = null) {
  const keysOf = (/** @type {Page} */ page, /** @type {Step} */ step) => {
    const keys = [...new Set([...Object.keys(step.answers), ...Object.keys(page.answers)])].filter((key) => viewOf(key) === name);
    return (QUESTIONS[name] ?? [...new Set(keys.map(questionOf))]).flatMap((question) => keys.filter((key) => questionOf(key) === question));
  };
  const refusedOf = (/** @type {Page} */ page) => Object.keys(page.refused).filter((question) => viewOf(question) === name);
  return {
    name,
    title,
    is: (page, step) => keysOf(page, step).length > 0 || refusedOf(page).length > 0,
    show: (/** @type {Shown} */ props) => {
      const keys = keysOf(props.page, props.step);
      return html`
        ${refusedOf(props.page).map((each) => html`<p class="state">${printable(props.page.refused[each])}</p>`)}
        ${above && html`<${above} ...${props} />`}
        ${keys.length > 0 && html`<${Tables} ...${props} keys=${keys} />`}`;
    },
  };
}

/** @type {View[]} */
export const VIEWS = [
  { name: "overview", title: "Overview", is: () => true, show: Overview },
  { name: "timeline", title: "Timeline", is: (_, step) => step.lanes.length > 0, show: Timeline },
  { name: "idle", title: "Idle", is: (_, step) => "idle" in step.answers, show: Idle },
  tables("kernels", "Kernels"),
  { name: "ops", title: "Ops", is: (_, step) => "ops" in step.answers, show: Icicle },
  tables("backward", "Backward"),
  tables("copies", "Copies"),
  tables("launches", "Launches"),
  tables("streams", "Streams"),
  tables("graphs", "Graphs"),
  tables("critical-path", "Critical path"),
  { name: "steps", title: "Steps", is: (page, step) => "steps" in page.answers || "steps" in step.answers, show: Steps },
  { name: "compare", title: "Compare", is: (page) => Boolean(page.compare) || "compare" in page.refused, show: Compare },
  tables("ranks", "Ranks"),
  tables("memory", "Memory", MemoryCurves),
  tables(OTHERS, "Other answers"),
  { name: "findings", title: "Findings", is: () => true, show: Findings },
  { name: "trust", title: "Trust", is: () => true, show: Trust },
];
