// Where the page has its data from when it is served: one answer at a time, of the chosen part of a step.
import { signal } from "@preact/signals";
import { pattern } from "./pattern.js";
import { settledSearch, settledWindow, state } from "./state.js";
import { token } from "./token.js";

/** @typedef {import("./provider.js").Answer} Answer */
/** @typedef {import("./provider.js").Page} Page */
/** @typedef {import("./provider.js").Step} Step */
/** @typedef {{id: string, name: string, kind: string, bytes: number, modified_ms: number, version: string,
 *   refused: string}} Run */
/** @typedef {{format: string, version: string, title: string, perfetto: boolean, first: string}} Session */
/** @typedef {{session: Session, ids: string[], before: string, earlier?: Page}} Wanted `before`: how many of the runs, the first
 *   ones, the others are compared with; "": they are not compared. `earlier`: the page of the same runs as it was. */

const NAMES_IN_TITLE = 3;
/** Answers that are kept; the ones used longest ago are forgotten. */
const MOST_ANSWERS = 300;

/** The server gave no answer, which says nothing of what was asked for. */
export class NoAnswerError extends Error {}

/** @param {string} path @param {Record<string, string>} [headers] @returns {Promise<Response>} */
async function request(path, headers = {}) {
  let response;
  try {
    response = await fetch(path, { headers: token ? { "X-Collector-Token": token, ...headers } : headers });
  } catch {
    throw new NoAnswerError("The server does not answer: it was ended.");
  }
  if (response.ok || response.status === 304) return response;
  const { error } = await response.json().catch(() => ({ error: `the server answers with ${response.status}` }));
  throw new Error(error);
}

/** @param {string} path @returns {Promise<any>} */
export async function ask(path) {
  const found = await (await request(path)).json();
  if (found.error) throw new Error(found.error);
  return found;
}

/** @param {string} path */
export async function askBytes(path) {
  const response = await request(path);
  if (response.headers.get("Content-Type") === "application/json") throw new Error((await response.json()).error);
  return new Uint8Array(await response.arrayBuffer());
}

/** What is served; null until that is known, and in a file. */
export const session = signal(/** @type {Session | null} */ (null));

/** What is served, and the cookie of this start. @returns {Promise<Session>} */
export async function loadSession() {
  session.value = await ask("/api/session");
  return /** @type {Session} */ (session.value);
}

let tag = "";

/** The list of runs; null where it is the one that was loaded last. @returns {Promise<{runs: Run[], left_out: number} | null>} */
export async function loadRuns() {
  const response = await request("/api/runs", tag ? { "If-None-Match": tag } : {});
  if (response.status === 304) return null;
  tag = response.headers.get("ETag") ?? "";
  return response.json();
}

/** Ask with options, of which those that are empty are left out. @param {string} path @param {Record<string, string>} options */
export function withOptions(path, options) {
  const given = new URLSearchParams(Object.entries(options).filter(([, value]) => value !== ""));
  return given.size ? `${path}?${given}` : path;
}

/** @type {Map<string, {value?: any, error?: Error, promise: Promise<void>}>} */
const answers = new Map();
/** How many answers have come; who reads it is drawn again when one comes. */
const arrived = signal(0);

/** Forget all answers: a file has changed. */
export function forgetAnswers() {
  answers.clear();
}

/** Forget why answers could not be had, so that they are asked for again. */
export function forgetFailures() {
  for (const [path, { error }] of answers) if (error) answers.delete(path);
}

/** @param {string} path */
function known(path) {
  let found = answers.get(path);
  if (found) answers.delete(path);
  else {
    /** @type {{value?: any, error?: Error, promise: Promise<void>}} */
    const made = { promise: Promise.resolve() };
    made.promise = ask(path).then((value) => { made.value = value; }, (error) => { made.error = error; })
      .then(() => { arrived.value++; });
    found = made;
    if (answers.size >= MOST_ANSWERS) answers.delete(/** @type {string} */ (answers.keys().next().value));
  }
  answers.set(path, found);
  return found;
}

/** By answers, the same with why rows of them that were searched for are not given. @type {WeakMap<Answer, Answer>} */
const refusedAnswers = new WeakMap();

/** @param {Answer} answer @param {string} why @returns {Answer} the same one for the same reason */
function refused(answer, why) {
  let found = refusedAnswers.get(answer);
  if (found?.refused !== why) {
    found = { ...answer, refused: why };
    refusedAnswers.set(answer, found);
  }
  return found;
}

/** The latest of each of some answers, by these. @type {WeakMap<Record<string, Answer>, Record<string, Answer>>} */
const latestOf = new WeakMap();

/** Answers that are asked for when they are read. Who reads one that is not there yet is drawn again when it comes: until
 * then the one before it is given, or else a promise is thrown, which `Ready` catches.
 * @param {string[]} keys @param {string} path
 * @param {() => import("./window.js").Part | null} asked the part of the step that they are about; null: all of it
 * @param {boolean} isListed whether they have the rows that are searched for, in the chosen order
 * @param {Record<string, Answer>} [before] the same about the file as it was
 * @returns {Record<string, Answer>} */
function lazyAnswers(keys, path, asked, isListed, before) {
  /** @type {Record<string, Answer>} */
  const answers = {};
  /** @type {Record<string, Answer>} */
  const latest = { ...(before && latestOf.get(before)) };
  latestOf.set(answers, latest);
  for (const key of keys) {
    const read = () => {
      arrived.value;
      const part = asked();
      const options = { key, from: part ? String(part.start) : "", to: part ? String(part.end) : "" };
      let found = known(withOptions(path, options));
      const { sort } = state.value;
      const q = pattern(state.value.q) ? state.value.q : "";
      if (isListed && found.value && found.value.rows > found.value.values[0].length && (q || sort)) {
        if (settledSearch.value !== state.value.q) return latest[key] ?? found.value; // in which the page searches meanwhile
        latest[key] = found.value; // the rows that fit may not be among those that the page is given
        found = known(withOptions(path, { ...options, q, sort }));
        if (found.error) return refused(latest[key], found.error.message);
      }
      if (found.error) throw found.error;
      if (found.value) latest[key] = found.value;
      else if (!(key in latest)) throw found.promise;
      return latest[key];
    };
    Object.defineProperty(answers, key, { enumerable: true, get: read });
  }
  return answers;
}

/** The page of some runs. @param {Wanted} wanted @returns {Promise<Page>} */
export async function loadServedPage({ session, ids, before, earlier }) {
  const steps = await Promise.all(ids.map(async (id, place) => {
    const path = `/api/runs/${id}`;
    const step = await ask(path);
    const known = earlier?.steps[place];
    const answersOf = (/** @type {Parameters<typeof lazyAnswers>[2]} */ asked, /** @type {"answers" | "listed" | "whole"} */ kind) =>
      lazyAnswers(step.keys, `${path}/answers`, asked, kind === "listed", known?.[kind]);
    const part = () => settledWindow.value;
    return { ...step, id, answers: answersOf(part, "answers"), listed: answersOf(part, "listed"), whole: answersOf(() => null, "whole") };
  }));
  const together = steps.length < 2 ? { answers: {}, refused: {}, compare: null }
    : await ask(withOptions("/api/together", { runs: ids.join(","), before }));
  return {
    format: session.format,
    version: session.version,
    first: Number(before),
    title: steps.slice(0, NAMES_IN_TITLE).map((step) => step.name).join(", ") + (steps.length > NAMES_IN_TITLE ? ", …" : ""),
    steps,
    ...together,
  };
}
