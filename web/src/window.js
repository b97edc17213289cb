// Which rows of an answer are in the chosen part of the step: those whose own times say so.

/** @typedef {import("./provider.js").Answer} Answer */

/** When a row was, in ns since the step began; null where its answer does not say.
 * @param {Answer} answer @param {number} row */
export function timesOf(answer, row) {
  const at = (/** @type {string} */ name) => answer.columns.findIndex((column) => column.name === name);
  const [start, end, length] = [at("start_ns"), at("end_ns"), at("duration_ns")];
  if (start < 0 || (end < 0 && length < 0)) return null;
  const began = Number(answer.values[start][row]) + (answer.part?.start ?? 0);
  return { start: began, end: end >= 0 ? Number(answer.values[end][row]) + (answer.part?.start ?? 0) : began + Number(answer.values[length][row]) };
}

/** Whether a row overlaps a part of the step, more than at its ends; a row without length counts at the ends as well. This is
 * the rule of `Recording.between`. @param {number} start @param {number} end @param {{start: number, end: number}} part */
export function overlaps(start, end, part) {
  return start === end ? start <= part.end && end >= part.start : start < part.end && end > part.start;
}

/** The rows that are in a part of the step at least partly; null where rows have no times, or no part is chosen.
 * @param {Answer} answer @param {{start: number, end: number} | null} part */
export function inWindow(answer, part) {
  if (!part || answer.part || !timesOf(answer, 0)) return null;
  /** @type {Set<number>} */
  const kept = new Set();
  for (let row = 0; row < answer.values[0].length; row++) {
    const times = /** @type {{start: number, end: number}} */ (timesOf(answer, row));
    if (overlaps(times.start, times.end, part)) kept.add(row);
  }
  return kept;
}

/** Python and the command that ask the same of a part of a step.
 * @param {Answer} answer about a whole step @param {{start: number, end: number}} part */
export function within(answer, part) {
  return {
    python: answer.python.replace("(step", `(analysis.between(step, ${part.start}, ${part.end})`),
    cli: `${answer.cli} --window ${part.start}ns..${part.end}ns`,
  };
}

/** What an answer is about while a window is chosen. @param {Answer} answer @param {{start: number, end: number} | null} part
 * @param {Set<number> | null} kept the rows that are shown of it; null: all */
export function aboutWindow(answer, part, kept) {
  if (!part || kept) return "";
  if (answer.part) return "These are the figures of the window: whatever overlaps it counts whole.";
  return "These are the figures of the whole step, whatever window is chosen.";
}

/** @typedef {{start: number, end: number}} Part */

const SHORTEST = 10; // ns: no window is shorter

/** A window between two times of a step of a length. @param {{length_ns: number}} step @param {number} from @param {number} to @returns {Part} */
export function between({ length_ns }, from, to) {
  const start = Math.max(0, Math.min(from, length_ns - SHORTEST));
  return { start, end: Math.min(length_ns, Math.max(to, start + SHORTEST)) };
}

/** The part of a window that is in a step, which the address may not know; null: none is.
 * @param {{length_ns: number}} step @param {Part} part */
export function inside(step, part) {
  return part.start < step.length_ns && part.end > 0 ? between(step, part.start, part.end) : null;
}

/** A window with a time of the step in its middle; nothing that began before the step or ended behind it is shown whole.
 * @param {{length_ns: number}} step @param {number} start @param {number} end @returns {Part} */
export function around(step, start, end) {
  const [from, to] = [start, end].map((time) => Math.max(0, Math.min(time, step.length_ns)));
  const room = Math.max(to - from, SHORTEST);
  return { start: Math.max(0, from - room), end: Math.min(step.length_ns, to + room) };
}

/** A window so many times as long, in which a time stays where it is; null: the whole step.
 * @param {{length_ns: number}} step @param {Part} part @param {number} time @param {number} factor */
export function zoomed(step, part, time, factor) {
  if ((part.end - part.start) * factor >= step.length_ns) return null;
  return between(step, time - (time - part.start) * factor, time + (part.end - time) * factor);
}

/** A window of the same length, earlier or later. @param {{length_ns: number}} step @param {Part} part @param {number} by */
export function moved(step, part, by) {
  const kept = Math.max(-part.start, Math.min(by, step.length_ns - part.end));
  return between(step, part.start + kept, part.end + kept);
}
