// All that a person has chosen, in the part of the address behind "#", so that a link shows the same.
import { computed, effect, signal } from "@preact/signals";

/** @typedef {{view: string, step: string, from: string, to: string, q: string, sort: string, by: string, cols: string,
 *   rows: string}} State */

/** @type {State} */
const NOTHING = { view: "overview", step: "0", from: "", to: "", q: "", sort: "", by: "", cols: "", rows: "" };
/** What belongs to one view, and is forgotten when another one is opened. */
const OF_A_VIEW = ["q", "sort", "by", "cols", "rows"];

/** @returns {State} */
function read() {
  const found = new URLSearchParams(location.hash.slice(1));
  const state = { ...NOTHING };
  for (const key of /** @type {(keyof State)[]} */ (Object.keys(NOTHING))) state[key] = found.get(key) ?? NOTHING[key];
  return state;
}

export const state = signal(read());
window.addEventListener("hashchange", () => {
  const now = read();
  if (JSON.stringify(now) !== JSON.stringify(state.value)) state.value = now;
});
effect(() => {
  const chosen = new URLSearchParams();
  for (const [key, value] of Object.entries(state.value)) {
    if (value !== NOTHING[/** @type {keyof State} */ (key)]) chosen.set(key, value);
  }
  const hash = chosen.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
});

/** Change some of it. @param {Partial<State>} change */
export function choose(change) {
  state.value = { ...state.value, ...change };
}

/** Open a view, as another page of the history. @param {string} view @param {Partial<State>} [change] */
export function open(view, change = {}) {
  const forgotten = Object.fromEntries(OF_A_VIEW.map((key) => [key, ""]));
  history.pushState(null, "", location.href);
  state.value = { ...state.value, ...forgotten, view, ...change };
}

/** The chosen part of the step, ns since it began; null: all of it. */
export const chosenWindow = computed(() => {
  const { from, to } = state.value;
  const start = Number(from);
  const end = Number(to);
  return from !== "" && to !== "" && end > start ? { start, end } : null;
});

/** Choose a part of the step, or all of it. @param {{start: number, end: number} | null} part */
export function chooseWindow(part) {
  choose(part ? { from: String(Math.floor(part.start)), to: String(Math.ceil(part.end)) } : { from: "", to: "" });
}
