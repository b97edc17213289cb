// Unions of time intervals in whole nanoseconds, as collector/recording/intervals.py and native/analysis have them.

/** @typedef {{start: number, end: number}} Interval */
/** @typedef {Interval & {tag: number}} Tagged */

/** The union of any intervals: such as do not touch each other, in order. @param {Interval[]} intervals @returns {Interval[]} */
export function union(intervals) {
  /** @type {Interval[]} */
  const found = [];
  for (const { start, end } of intervals.filter((each) => each.end > each.start).sort((one, other) => one.start - other.start)) {
    const last = found[found.length - 1];
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else found.push({ start, end });
  }
  return found;
}

/** @param {Interval[]} intervals that do not overlap */
export function lengthOf(intervals) {
  return intervals.reduce((sum, each) => sum + each.end - each.start, 0);
}

/** What a union leaves of another one. @param {Interval[]} union @param {Interval[]} other @returns {Interval[]} */
export function without(union, other) {
  const found = [];
  let at = 0;
  for (const { start, end } of union) {
    let from = start;
    while (at < other.length && other[at].end <= start) at++;
    for (let place = at; place < other.length && other[place].start < end; place++) {
      if (other[place].start > from) found.push({ start: from, end: other[place].start });
      from = Math.max(from, other[place].end);
    }
    if (from < end) found.push({ start: from, end });
  }
  return found;
}

/** The time that both unions cover. @param {Interval[]} union @param {Interval[]} other */
export function overlap(union, other) {
  return lengthOf(union) - lengthOf(without(union, other));
}

/** The part of an interval that a window has. @template {Interval} Each @param {Each} each @param {Interval} window @returns {Each} */
export function clipped(each, window) {
  const within = (/** @type {number} */ time) => Math.max(window.start, Math.min(time, window.end));
  return { ...each, start: within(each.start), end: within(each.end) };
}

/** Passes each stretch in which something runs, with how many intervals of each tag run in it.
 * @param {Tagged[]} intervals @param {(length: number, running: Map<number, number>) => void} pass */
export function sweep(intervals, pass) {
  const filled = intervals.filter((each) => each.end > each.start);
  const starts = [...filled].sort((one, other) => one.start - other.start);
  const ends = filled.sort((one, other) => one.end - other.end);
  /** @type {Map<number, number>} */
  const running = new Map();
  let now = 0;
  let started = 0;
  for (const { end, tag } of ends) {
    for (; started < starts.length && starts[started].start < end; started++) {
      const next = starts[started];
      if (running.size && next.start > now) pass(next.start - now, running);
      now = next.start;
      running.set(next.tag, (running.get(next.tag) ?? 0) + 1);
    }
    if (end > now) pass(end - now, running);
    now = end;
    const left = /** @type {number} */ (running.get(tag)) - 1;
    if (left) running.set(tag, left);
    else running.delete(tag);
  }
}

/** How long 0, 1, 2, … of the intervals run at once in a window. @param {Interval[]} intervals within it @param {Interval} window */
export function timesByNumber(intervals, window) {
  const times = [window.end - window.start];
  sweep(intervals.map((each) => ({ ...each, tag: 0 })), (length, running) => {
    const number = /** @type {number} */ (running.get(0));
    while (times.length <= number) times.push(0);
    times[number] += length;
    times[0] -= length;
  });
  return times;
}

/** How long only intervals of one tag run, by the tag. @param {Tagged[]} intervals @returns {Map<number, number>} */
export function timesAlone(intervals) {
  /** @type {Map<number, number>} */
  const alone = new Map();
  sweep(intervals, (length, running) => {
    if (running.size !== 1) return;
    const [tag] = running.keys();
    alone.set(tag, (alone.get(tag) ?? 0) + length);
  });
  return alone;
}

/** The times of a window that intervals leave free, and the place of the first interval that starts at the end of each; -1:
 * none does. @param {Interval[]} intervals in order of their starts @param {Interval} window */
export function gapsBetween(intervals, window) {
  const found = [];
  let free = window.start;
  intervals.forEach(({ start, end }, place) => {
    if (end < window.start || start > window.end) return;
    if (start > free) found.push({ start: free, end: start, endedBy: place });
    free = Math.max(free, end);
  });
  if (free < window.end) found.push({ start: free, end: window.end, endedBy: -1 });
  return found;
}
