// The page: what is shown of which step, the chosen window, keys.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, choose, chosenPlace, chosenWindow, chooseWindow, open, state, stepAt, turnTo } from "./state.js";
import { focusLanes, lanesShown } from "./lanes_focus.js";
import { exact, printable, timeText } from "./numbers.js";
import { usePartOf } from "./part_step.js";
import { isServed } from "./provider.js";
import { Ready } from "./ready.js";
import { endTexts } from "./ticks.js";
import { VIEWS } from "./views.js";
import { inside } from "./window.js";

/** @typedef {import("./provider.js").Page} Page */

const KEYS = [
  ["/", "search the table"],
  ["j, k", "next and previous view"],
  ["1 … 9", "the first to the ninth view"],
  ["J, K", "next and previous step"],
  ["w", "the whole step"],
  ["t", "go to the lanes, of this view or of the timeline"],
  ["← →", "on the lanes: earlier, later"],
  ["+ −", "on the lanes: zoom"],
  ["↑ ↓", "on the lanes: pick a lane"],
  ["n, p", "on the lanes: next and previous slice"],
  ["Enter", "on the lanes: show the picked slice"],
  ["Home", "on the lanes: show all"],
  ["?", "this list"],
  ["Esc", "close this list, leave the search"],
];

/** @param {{page: Page}} props */
export function App({ page }) {
  const [help, setHelp] = useState(false);
  const { place, whole, views, shownView } = chosenOf(page);
  const [step, why] = usePartOf(whole, place);
  useEffect(() => {
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.key === "Escape") {
        setHelp(false);
        target.blur?.();
      }
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      const { place, views, shownView } = chosenOf(page); // at this moment: another key may have come since the page was drawn
      const at = views.indexOf(shownView);
      const chosenView = /^[1-9]$/.test(event.key) ? views[Number(event.key) - 1] : undefined;
      if (event.key === "/") {
        event.preventDefault();
        /** @type {HTMLElement | null} */ (document.querySelector("input.search"))?.focus();
      } else if (event.key === "?") setHelp((shown) => !shown);
      else if (event.key === "t") {
        if (!lanesShown() && views.some((each) => each.name === "timeline")) open("timeline");
        focusLanes();
      }
      else if (chosenView) open(chosenView.name);
      else if (event.key === "J" && place + 1 < page.steps.length) openStep(page, place + 1);
      else if (event.key === "K" && place > 0) openStep(page, place - 1);
      else if (event.key === "w") chooseWindow(null);
      else if (event.key === "j") open(views[(at + 1) % views.length].name);
      else if (event.key === "k") open(views[(at + views.length - 1) % views.length].name);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [page]);
  const { from, to } = state.value;
  useEffect(() => { // the address shows the part that is in the step
    const part = chosenWindow.value;
    const found = part && (part.end <= whole.length_ns ? part : inside(whole, part));
    const change = found ? { from: String(found.start), to: String(found.end) } : { from: "", to: "" };
    if (change.from !== from || change.to !== to) choose(change);
  }, [whole, from, to]);
  useEffect(() => { document.title = printable(page.title); }, [page]);
  return html`
    <header>
      <h1>${printable(page.title)}</h1>
      <${Badge} step=${step} />
      ${step.label && html`<span class="label">${printable(step.label)}</span>`}
      ${page.steps.length > 1 && html`
        <label class="steps">step <select value=${String(place)}
          onChange=${(/** @type {any} */ event) => openStep(page, Number(event.target.value))}>
          ${page.steps.map((each, at) => html`<option value=${String(at)}>${at}: ${printable(each.name)}${sideOf(page, at)}</option>`)}
        </select></label>`}
      <span class="right"><${Window} step=${step} />
        <button class="quiet" title="list the keys" onClick=${() => setHelp((shown) => !shown)} aria-expanded=${help}>keys <kbd>?</kbd></button></span>
    </header>
    ${step.simulated && html`<p class="remark">A simulated GPU: the times are made up.</p>`}
    ${step.unavailable && html`<p class="remark" role="alert">Not traced: ${printable(step.unavailable)}</p>`}
    ${step.warning && html`<p class="remark" role="alert">Damaged: ${printable(step.warning)}</p>`}
    ${why && html`<p class="remark" role="alert">Answers about the window cannot be made: ${printable(why)}</p>`}
    ${help && html`
      <div class="help" role="dialog" aria-label="keys" tabindex="0">
        <table><tbody>${KEYS.map(([key, what]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
      </div>`}
    <nav aria-label="views">
      <ul>${isServed && html`<li><a href=${address("runs")}>Runs</a></li>`}
        ${step.id && html`<li><a href=${address("prof", { runs: step.id })}>tfprof</a></li>`}
        ${views.map((each) => html`
        <li><a href=${address(each.name)} aria-current=${each === shownView ? "page" : undefined}>${each.title}</a></li>`)}</ul>
    </nav>
    <article key=${`${shownView.name} ${place}`}>
      <${Ready}><${shownView.show} page=${page} step=${step} place=${place} /></${Ready}>
    </article>
    <footer><p>${page.format}, made by cupti-collector ${page.version}. ${isServed ? "Served by this machine to itself alone." : "Nothing here is loaded from anywhere."}</p></footer>`;
}

/** The chosen step of a page, the views that it has, and the chosen one of them. @param {Page} page */
function chosenOf(page) {
  const place = chosenPlace(page);
  const whole = page.steps[place];
  const views = VIEWS.filter((each) => each.is(page, whole));
  return { place, whole, views, shownView: views.find((each) => each.name === state.value.view) ?? views[0] };
}

/** @param {Page} page @param {number} place */
function openStep(page, place) {
  turnTo({ step: stepAt(page, place), from: "", to: "" });
}

/** Which side of a comparison a step is on. @param {Page} page @param {number} place */
function sideOf({ compare }, place) {
  const side = (/** @type {const} */ (["before", "now"])).find((each) => compare?.[each].steps.includes(place));
  return side ? ` (${side})` : "";
}

/** Whether anything was lost. @param {{step: import("./provider.js").Step}} props */
function Badge({ step }) {
  const [kind, text] = step.unavailable ? ["bad", "✕ not traced"]
    : step.warning || step.losses.length > 0 ? ["bad", "⚠ incomplete"]
    : !step.lanes.some((lane) => lane.kind === "device") ? ["", "○ no GPU work"] : ["good", "✓ complete"];
  return html`<a class=${`badge ${kind}`} href=${address("trust")}>${text}</a>`;
}

/** The chosen part of the step. @param {{step: import("./provider.js").Step}} props */
function Window({ step }) {
  const part = chosenWindow.value;
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  if (!part) return html`<span class="window" ref=${place} tabindex="-1" title=${exact(step.length_ns, "ns")}>whole step, ${timeText(step.length_ns)}</span>`;
  return html`
    <span class="window chosen" ref=${place} tabindex="-1"><span title=${`${exact(part.start, "ns")} to ${exact(part.end, "ns")}`}>window ${endTexts(part).join(" to ")}</span> (${timeText(part.end - part.start)}) of ${timeText(step.length_ns)}
      <button class="quiet" onClick=${() => { chooseWindow(null); place.current?.focus(); }}>whole step</button></span>`;
}
