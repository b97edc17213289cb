// Annotations of a part of a step: their paths, the host's time in them, and GPU time by path (collector/analysis/ops.py).
import { overlaps } from "../window.js";
import { byCodePoints, figuresOf, groupedBy, longestFirst, ratio } from "./groups.js";
import { activitiesOf, parentsOf } from "./rows.js";

/** @typedef {import("../provider.js").Answer} Answer */
/** @typedef {import("./answers.js").Asked} Asked */

export const NO_ANNOTATION = "(no annotation)";

const MOST_CHARACTERS = 4096;

/** A joined path, or its beginning where ranges enclose each other without end (collector/analysis/annotation_paths.py).
 * @param {string} path */
function bounded(path) {
  if (path.length <= MOST_CHARACTERS) return path;
  const characters = [...path];
  return characters.length <= MOST_CHARACTERS ? path : `${characters.slice(0, MOST_CHARACTERS - 1).join("")}…`;
}

/** Row of an annotation of the part -> its path: the names of the enclosing annotations on its thread and its own. The rows
 * behind those of the table stand for names alone.
 * @param {Asked} asked @returns {Map<number, string>} */
export function pathsOf({ info, rows, cut, answers }) {
  const { code, start } = rows.annotations;
  const names = answers["annotation_times/name"]?.values[0] ?? [];
  const parents = info.whole_paths ? null : parentsOf(rows.annotations);
  /** @type {Map<number, string>} */
  const known = new Map();
  for (const row of cut.annotations) {
    const unknown = [];
    for (let each = row; each >= 0 && !known.has(each); each = parents?.[each] ?? -1) unknown.push(each);
    for (const each of unknown.reverse()) {
      const name = String(names[code[each]]);
      const outer = known.get(parents?.[each] ?? -1);
      known.set(each, !outer || name.startsWith(`${outer}/`) ? name : bounded(`${outer}/${name}`));
    }
  }
  const paths = new Map(cut.annotations.map((row) => [row, /** @type {string} */ (known.get(row))]));
  info.names.forEach((name, place) => paths.set(start.length + place, name));
  return paths;
}

const CAPTURED_AT = "<captured_at>";

/** The path under which an activity was launched, and behind it that of its capture in a CUDA graph; empty: none.
 * @param {Asked} asked @param {Map<number, string>} paths those of annotations @returns {(row: number) => string} */
export function launchPathsOf({ rows: { work } }, paths) {
  return (row) => {
    const launched = paths.get(work.annotation[row] - 1) ?? "";
    const captured = paths.get(work.captured[row] - 1) ?? "";
    return !captured ? launched : launched ? `${launched}/${CAPTURED_AT}/${captured}` : `${CAPTURED_AT}/${captured}`;
  };
}

const MARK = /^(profiler_?|train(ing)?_?)?(step|iteration|iter|batch)[ _#:=-]*[0-9]*$/iu;

/** The rows of the annotations that mark steps, in order of time (collector/analysis/step_marks.py).
 * @param {Asked} asked @param {Map<number, string>} paths */
export function marksOf({ rows: { annotations: { thread, start, length } } }, paths) {
  const named = [...paths].filter(([row, path]) => length[row] > 0 && MARK.test(path.slice(path.lastIndexOf("/") + 1))).map(([row]) => row);
  const [own] = [...groupedBy(named, (row) => thread[row])].sort((one, other) => other[1].length - one[1].length || one[0] - other[0])
    .map(([, rows]) => rows);
  let reached = -Infinity;
  const outer = (own ?? []).sort((one, other) => start[one] - start[other] || length[other] - length[one] || one - other).filter((row) => {
    const isOuter = start[row] >= reached;
    reached = Math.max(reached, start[row] + length[row]);
    return isOuter;
  });
  return outer.length > 1 ? outer : [];
}

/** The rows of the marks that overlap the part, if there are several.
 * @param {Asked} asked @param {Map<number, string>} paths */
export function stepsOf(asked, paths) {
  const { rows: { annotations: { start, length } }, cut: { part } } = asked;
  const found = marksOf(asked, paths).filter((row) => overlaps(start[row], start[row] + length[row], part));
  return found.length > 1 ? found : [];
}

/** The part of a path inside the mark of its step; outside of steps the whole path. @param {string} path @param {Set<string>} marks */
export function pathWithin(path, marks) {
  for (let outer = path; outer; outer = around(outer)) if (marks.has(outer)) return path.slice(outer.length + 1);
  return path;
}

/** The paths of the annotations that have times. @param {Asked} asked @param {Map<number, string>} paths */
function entered({ rows: { annotations } }, paths) {
  return [...paths].filter(([row]) => row < annotations.start.length);
}

/** @param {Answer} whole @param {Asked} asked */
export function annotationPathTimes(whole, asked) {
  const paths = entered(asked, pathsOf(asked));
  const groups = [...groupedBy(paths, ([, path]) => path)].map(([path, own]) =>
    ({ path, ...figuresOf(own.map(([row]) => asked.rows.annotations.length[row])) }));
  return longestFirst(groups, whole.columns.map((each) => each.name));
}

/** The path of the enclosing annotation; empty: there is none. @param {string} path */
function around(path) {
  return path === NO_ANNOTATION ? "" : path.slice(0, Math.max(path.lastIndexOf("/"), 0));
}

/** GPU time by path: a tree in which each path is followed by the paths inside it. @param {Answer} _ @param {Asked} asked */
export function ops(_, asked) {
  const { rows: { work, annotations } } = asked;
  const paths = pathsOf(asked);
  const pathOf = launchPathsOf(asked, paths);
  /** @typedef {{path: string, runs: number, host_ns: number, self_activities: number, self_ns: number, total_ns: number,
   *   activities: number, inside: Scope[]}} Scope */
  /** @type {Map<string, Scope>} */
  const scopes = new Map();
  /** @type {Scope[]} */
  const outer = [];
  /** @param {string} path @returns {Scope} */
  const scopeOf = (path) => {
    let found = scopes.get(path);
    if (!found) {
      found = { path, runs: 0, host_ns: 0, self_activities: 0, self_ns: 0, total_ns: 0, activities: 0, inside: [] };
      scopes.set(path, found);
      const outside = around(path);
      (outside ? scopeOf(outside).inside : outer).push(found);
    }
    return found;
  };
  for (const [row, path] of entered(asked, paths)) {
    const scope = scopeOf(path || NO_ANNOTATION);
    scope.runs++;
    scope.host_ns += annotations.length[row];
  }
  for (const row of activitiesOf(asked)) {
    const path = pathOf(row) || NO_ANNOTATION;
    const scope = scopeOf(path);
    scope.self_activities++;
    scope.self_ns += work.length[row];
    for (let within = path; within; within = around(within)) {
      scopeOf(within).activities++;
      scopeOf(within).total_ns += work.length[row];
    }
  }
  const whole = outer.reduce((sum, each) => sum + each.total_ns, 0);
  /** @param {Scope[]} these @param {number} depth @returns {any[]} */
  const inOrder = (these, depth) => these
    .filter((each) => each.activities > 0)
    .sort((one, other) => other.total_ns - one.total_ns || byCodePoints(one.path, other.path))
    .flatMap((each) => [{ ...each, depth, share: ratio(each.total_ns, whole) }, ...inOrder(each.inside, depth + 1)]);
  return inOrder(outer, 0);
}
