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

/** @typedef {import("./provider.js").Page} Page */
/** @typedef {import("./provider.js").Step} Step */
/** @typedef {{page: Page, step: Step, place: number}} Shown */
/** @typedef {{name: string, title: string, is: (page: Page, step: Step) => boolean, show: (props: any) => any}} View */

/** Tables of the answers to some questions. @param {string} name @param {string} title @param {string[]} questions
 * @param {any} above what stands above them @returns {View} */
function tables(name, title, questions, above = null) {
  const of = (/** @type {Page} */ page, /** @type {Step} */ step) => {
    const answers = new Set([...Object.keys(step.answers), ...Object.keys(page.answers)]);
    return questions.flatMap((question) =>
      [...answers].filter((key) => key === question || key.startsWith(`${question}/`)));
  };
  return {
    name,
    title,
    is: (page, step) => of(page, step).length > 0 || questions.some((each) => each in page.refused),
    show: (/** @type {Shown} */ props) => {
      const keys = of(props.page, props.step);
      const refused = questions.flatMap((each) => props.page.refused[each] ?? []);
      return html`
        ${refused.map((why) => html`<p class="state">${printable(why)}</p>`)}
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
  tables("kernels", "Kernels", ["kernels", "tensor_cores", "occupancy"]),
  { name: "ops", title: "Ops", is: (_, step) => "ops" in step.answers, show: Icicle },
  tables("backward", "Backward", ["backward"]),
  tables("copies", "Copies", ["copies"]),
  tables("launches", "Launches", ["launches", "calls", "queue", "launch_delays", "annotation_times"]),
  tables("streams", "Streams", ["streams", "concurrency", "overlap"]),
  tables("graphs", "Graphs", ["graphs"]),
  tables("critical-path", "Critical path", ["critical_path"]),
  { name: "steps", title: "Steps", is: (page, step) => "steps" in page.answers || "steps" in step.answers, show: Steps },
  { name: "compare", title: "Compare", is: (page) => Boolean(page.compare) || "compare" in page.refused, show: Compare },
  tables("ranks", "Ranks", ["ranks"]),
  tables("memory", "Memory", ["memory", "memory_growth"], MemoryCurves),
  { name: "findings", title: "Findings", is: () => true, show: Findings },
  { name: "trust", title: "Trust", is: () => true, show: Trust },
];
