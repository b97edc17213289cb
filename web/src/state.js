// All that a person has chosen, in the part of the address behind "#", so that a link shows the same.
import { computed, effect, signal } from "@preact/signals";

/** @typedef {{view: string, step: string, from: string, to: string, q: string, sort: string, by: string, group: string,
 *   shut: string, cols: string, rows: string, runs: string, before: string, prof: string}} State */

/** @type {State} */
const NOTHING = {
  view: "overview", step: "", from: "", to: "", q: "", sort: "", by: "", group: "", shut: "", cols: "", rows: "",
  runs: "", before: "", prof: "",
};
/** What belongs to one table, and is forgotten when another one is opened. */
export const OF_A_TABLE = { q: "", sort: "", group: "", shut: "", cols: "", rows: "" };
/** A window that changes again this soon, as under a wheel, is no other page of the history. */
const SAME_MOVE_MS = 800;
/** A window that changes again this soon is not asked about. */
const SETTLED_MS = 150;
/** A text that is searched for and changes again this soon, as under the hands of a typist, is not asked about. */
const TYPED_MS = 300;
/** Browsers ignore changes of the address, or throw, from the hundredth within 10 s on: this many are written at once, and
 * further ones this far apart. */
const WRITTEN_AT_ONCE = 40;
const BETWEEN_WRITTEN_MS = 250;

/** @returns {State} */
function read() {
  const found = new URLSearchParams(location.hash.slice(1));
  const state = { ...NOTHING };
  for (const key of /** @type {(keyof State)[]} */ (Object.keys(NOTHING))) state[key] = found.get(key) ?? NOTHING[key];
  return state;
}

/** @param {State} wanted */
function hashOf(wanted) {
  const chosen = new URLSearchParams();
  for (const [key, value] of Object.entries(wanted)) {
    if (value !== NOTHING[/** @type {keyof State} */ (key)]) chosen.set(key, value);
  }
  return chosen.toString();
}

export const state = signal(read());
window.addEventListener("hashchange", () => {
  const now = read();
  if (JSON.stringify(now) !== JSON.stringify(state.value)) state.value = now;
});

let left = WRITTEN_AT_ONCE;
let counted = 0;
let waiting = 0;

/** Whether the address may be changed now, which is counted. */
function mayWrite() {
  const now = performance.now();
  left = Math.min(WRITTEN_AT_ONCE, left + (now - counted) / BETWEEN_WRITTEN_MS);
  counted = now;
  if (left < 1) return false;
  left--;
  return true;
}

/** @param {string} hash */
const addressOf = (hash) => (hash ? `#${hash}` : location.pathname + location.search);

/** Writes the state into the address, now or as soon as the browser takes it. */
function write() {
  const hash = hashOf(state.value);
  clearTimeout(waiting);
  if (hash === location.hash.slice(1)) return;
  if (mayWrite()) history.replaceState(null, "", addressOf(hash));
  else waiting = setTimeout(write, BETWEEN_WRITTEN_MS);
}
effect(write);

/** Change some of it. @param {Partial<State>} change */
export function choose(change) {
  state.value = { ...state.value, ...change };
}

/** Change some of it, as another page of the history; what changes nothing is none. @param {Partial<State>} change */
export function turnTo(change) {
  const hash = hashOf({ ...state.value, ...change });
  if (hash === hashOf(state.value)) return;
  write(); // so that the page that is left is as it was
  if (mayWrite()) history.pushState(null, "", addressOf(hash));
  choose(change);
}

/** The state of a view that is opened. @param {string} view @param {Partial<State>} [change] @returns {State} */
function opened(view, change = {}) {
  return { ...state.value, ...OF_A_TABLE, by: "", view, ...change };
}

/** Open a view at its top, as another page of the history. @param {string} view @param {Partial<State>} [change] */
export function open(view, change = {}) {
  turnTo(opened(view, change));
  scrollTo(0, 0);
}

/** Views that are opened by links begin at their top as well, once the place of the one before is in the history. */
document.addEventListener("click", (event) => {
  if (/** @type {Element} */ (event.target).closest?.("a[href^='#']")) setTimeout(() => scrollTo(0, 0));
});

/** The place of the chosen step of a page. @param {import("./provider.js").Page} page */
export function chosenPlace({ steps, first }) {
  const { step } = state.value;
  if (step !== "" && steps[Number(step)]) return Number(step);
  return steps[first] ? first : 0;
}

/** What the address holds of a step that is chosen: nothing of the one that the page opens at.
 * @param {import("./provider.js").Page} page @param {number} place */
export function stepAt({ first }, place) {
  return place === first ? "" : String(place);
}

/** The address of a view, for a link. @param {string} view @param {Partial<State>} [change] */
export function address(view, change = {}) {
  const { view: _, ...others } = opened(view, change);
  const rest = hashOf({ ...others, view: NOTHING.view });
  return `#view=${view}${rest && `&${rest}`}`;
}

/** The chosen part of the step, ns since it began; null: all of it. An address may hold any text: these are whole times, not
 * before the step. */
export const chosenWindow = computed(() => {
  const { from, to } = state.value;
  const start = Math.max(0, Math.min(Math.floor(Number(from)), Number.MAX_SAFE_INTEGER));
  const end = Math.min(Math.ceil(Number(to)), Number.MAX_SAFE_INTEGER);
  return from !== "" && to !== "" && end > start ? { start, end } : null;
});

/** The chosen window once it rests. */
export const settledWindow = signal(chosenWindow.value);
let timer = 0;
chosenWindow.subscribe((part) => {
  clearTimeout(timer);
  timer = setTimeout(() => { settledWindow.value = part; }, SETTLED_MS);
});

const search = computed(() => state.value.q);
/** The text that is searched for once it rests. */
export const settledSearch = signal(search.value);
let typing = 0;
search.subscribe((text) => {
  clearTimeout(typing);
  typing = setTimeout(() => { settledSearch.value = text; }, TYPED_MS);
});

let moved = -SAME_MOVE_MS;

/** Choose a part of the step, or all of it. @param {{start: number, end: number} | null} part */
export function chooseWindow(part) {
  const change = part ? { from: String(Math.floor(part.start)), to: String(Math.ceil(part.end)) } : { from: "", to: "" };
  const now = performance.now();
  (now - moved < SAME_MOVE_MS ? choose : turnTo)(change);
  moved = now;
}
