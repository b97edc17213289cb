// Rows grouped by their keys, with the figures of their durations (collector/analysis/duration_groups.py).

/** @typedef {import("../provider.js").Answer} Answer */
/** @typedef {Record<string, any>} Row A row of an answer: column -> value; `longest`: when the longest ran of what it counts. */

/** Order of texts as in Python, by code points. @param {string} one @param {string} other */
export function byCodePoints(one, other) {
  for (let at = 0; at < one.length && at < other.length; ) {
    const [left, right] = [/** @type {number} */ (one.codePointAt(at)), /** @type {number} */ (other.codePointAt(at))];
    if (left !== right) return left - right;
    at += left > 0xffff ? 2 : 1;
  }
  return one.length - other.length;
}

/** @param {number} part @param {number} whole */
export function ratio(part, whole) {
  return whole ? part / whole : 0;
}

/** The median; of an even number of values the lower middle one. @param {number[]} sorted */
export function lowerMedian(sorted) {
  return sorted[(sorted.length - 1) >> 1];
}

/** @param {number[]} values */
export function ascending(values) {
  return values.sort((one, other) => one - other);
}

/** @template Key, Each @param {Iterable<Each>} all @param {(each: Each) => Key} keyOf @returns {Map<Key, Each[]>} */
export function groupedBy(all, keyOf) {
  /** @type {Map<Key, Each[]>} */
  const groups = new Map();
  for (const each of all) {
    const key = keyOf(each);
    const own = groups.get(key);
    if (own) own.push(each);
    else groups.set(key, [each]);
  }
  return groups;
}

/** The number of elements at the begin of a list for which a condition holds; behind them it holds for none.
 * @template Each @param {Each[]} list @param {(each: Each) => boolean} holds */
export function countWhile(list, holds) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(list[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Figures of durations by the names of columns. @param {number[]} lengths */
export function figuresOf(lengths) {
  ascending(lengths);
  return {
    count: lengths.length,
    total_ns: lengths.reduce((sum, each) => sum + each, 0),
    min_ns: lengths[0],
    median_ns: lowerMedian(lengths),
    max_ns: lengths[lengths.length - 1],
  };
}

/** When the longest of some rows of a table ran, of equal ones the earliest.
 * @param {Record<string, Float64Array>} table @param {number[]} rows */
export function longestOf({ start, length }, rows) {
  const row = rows.reduce((found, each) =>
    (length[each] > length[found] || (length[each] === length[found] && start[each] < start[found]) ? each : found));
  return { start: start[row], end: start[row] + length[row] };
}

/** The same of each row of an answer, as starts and ends; empty where it is not known. @param {Row[]} rows */
export function longestTimes(rows) {
  return rows.some((row) => row.longest) ? [rows.map((row) => row.longest.start), rows.map((row) => row.longest.end)] : [];
}

/** A row of an answer by its columns. @param {Answer} answer @param {number} row @returns {Row} */
export function rowOf(answer, row) {
  return Object.fromEntries(answer.columns.map((column, at) => [column.name, answer.values[at][row]]));
}

/** Sorts rows, longest total first, equal totals in order of their keys: the columns before the count.
 * @param {Row[]} rows @param {string[]} names of the columns, in their order */
export function longestFirst(rows, names) {
  const keys = names.slice(0, names.indexOf("count"));
  const differs = (/** @type {any} */ one, /** @type {any} */ other) =>
    (typeof one === "string" ? byCodePoints(one, other) : one - other);
  return rows.sort((one, other) => other.total_ns - one.total_ns ||
    keys.reduce((found, key) => found || differs(one[key], other[key]), 0));
}

/** Rows with their shares of the sum of all totals. @param {Row[]} rows */
export function shared(rows) {
  const whole = rows.reduce((sum, each) => sum + each.total_ns, 0);
  return rows.map((each) => ({ ...each, share: ratio(each.total_ns, whole) }));
}
