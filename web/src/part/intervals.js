// Unions of time intervals in whole nanoseconds, as collector/recording/intervals.py and native/analysis have them.

/** @typedef {{start: number, end: number}} Interval */
/** @typedef {Interval & {tag: number}} Tagged */

/** The union of any intervals: intervals in order that do not touch each other. @param {Interval[]} intervals @returns {Interval[]} */
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

/** The difference of two unions. @param {Interval[]} union @param {Interval[]} other what is taken away @returns {Interval[]} */
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

/** An interval cut to a window. @template {Interval} Each @param {Each} each @param {Interval} window @returns {Each} */
export function clipped(each, window) {
  const within = (/** @type {number} */ time) => Math.max(window.start, Math.min(time, window.end));
  return { ...each, start: within(each.start), end: within(each.end) };
}

/** Calls `pass` for each time between two events in which intervals run, with the number of running intervals by tag.
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

/** Time in a window in which a number of the intervals run at once, indexed by the number. @param {Interval[]} intervals within it @param {Interval} window */
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

/** Tag -> time in which only intervals of this tag run. @param {Tagged[]} intervals @returns {Map<number, number>} */
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

/** The gaps between intervals in a window; `endedBy` is the index of the first interval that starts at the end of a gap, -1:
 * the window ends there. @param {Interval[]} intervals in order of their starts @param {Interval} window */
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
