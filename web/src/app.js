// The page: what is shown of which step, the chosen window, keys.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { chosenWindow, chooseWindow, choose, open, state } from "./state.js";
import { printable, timeText } from "./numbers.js";
import { VIEWS } from "./views.js";

/** @typedef {import("./provider.js").Page} Page */

const KEYS = [
  ["/", "search"],
  ["j, k", "next and previous view"],
  ["w", "show the whole step"],
  ["?", "this list"],
  ["Esc", "close this list, leave the search"],
];

/** @param {{page: Page}} props */
export function App({ page }) {
  const [help, setHelp] = useState(false);
  const { view, step: number } = state.value;
  const step = page.steps[Number(number)] ?? page.steps[0];
  const place = page.steps.indexOf(step);
  const views = VIEWS.filter((each) => each.is(page, step));
  const shownView = views.find((each) => each.name === view) ?? views[0];
  useEffect(() => {
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.key === "Escape") {
        setHelp(false);
        target.blur?.();
      }
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      const at = views.indexOf(shownView);
      if (event.key === "/") {
        event.preventDefault();
        /** @type {HTMLElement | null} */ (document.querySelector("input.search"))?.focus();
      } else if (event.key === "?") setHelp(true);
      else if (event.key === "w") chooseWindow(null);
      else if (event.key === "j") open(views[(at + 1) % views.length].name);
      else if (event.key === "k") open(views[(at + views.length - 1) % views.length].name);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  return html`
    <header>
      <h1>${printable(page.title)}</h1>
      <${Badge} step=${step} />
      ${page.steps.length > 1 && html`
        <label class="steps">step <select value=${String(place)}
          onChange=${(/** @type {any} */ event) => choose({ step: event.target.value, from: "", to: "" })}>
          ${page.steps.map((each, at) => html`<option value=${String(at)}>${at}: ${printable(each.name)}</option>`)}
        </select></label>`}
      <${Window} step=${step} />
      <button class="quiet" onClick=${() => setHelp(!help)} aria-expanded=${help}>keys</button>
    </header>
    ${step.simulated && html`<p class="remark">A simulated GPU: the times are made up.</p>`}
    ${step.unavailable && html`<p class="remark" role="alert">Not traced: ${printable(step.unavailable)}</p>`}
    ${step.warning && html`<p class="remark">${printable(step.warning)}</p>`}
    ${help && html`
      <aside class="help" role="dialog" aria-label="keys">
        <table><tbody>${KEYS.map(([key, what]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
      </aside>`}
    <nav aria-label="views">
      <ul>${views.map((each) => html`
        <li><a href=${`#view=${each.name}`} aria-current=${each === shownView ? "page" : undefined}
          onClick=${(/** @type {Event} */ event) => { event.preventDefault(); open(each.name); }}>${each.title}</a></li>`)}</ul>
    </nav>
    <article key=${`${shownView.name} ${place}`}><${shownView.show} page=${page} step=${step} place=${place} /></article>
    <footer><p>${page.format}, made by cupti-collector ${page.version}. Nothing here is loaded from anywhere.</p></footer>`;
}

/** Whether anything was lost. @param {{step: import("./provider.js").Step}} props */
function Badge({ step }) {
  if (step.unavailable) return html`<span class="badge bad">✕ not traced</span>`;
  return step.losses.length === 0
    ? html`<a class="badge good" href="#view=trust" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); open("trust"); }}>✓ complete</a>`
    : html`<a class="badge bad" href="#view=trust" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); open("trust"); }}>⚠ incomplete</a>`;
}

/** The chosen part of the step. @param {{step: import("./provider.js").Step}} props */
function Window({ step }) {
  const part = chosenWindow.value;
  if (!part) return html`<span class="window">all ${timeText(step.length_ns)}</span>`;
  return html`
    <span class="window">${timeText(part.start)} to ${timeText(part.end)} of ${timeText(step.length_ns)}
      <button class="quiet" onClick=${() => chooseWindow(null)}>whole step</button></span>`;
}
