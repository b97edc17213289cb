// Memory that the marked steps of a part of a step allocated and kept (collector/analysis/memory_growth.py).
import { byCodePoints, countWhile, groupedBy } from "./groups.js";
import { allocationsIn, keysOf } from "./memory.js";
import { NO_ANNOTATION, pathsOf, pathWithin, stepsOf } from "./ops.js";

/** @typedef {import("./answers.js").Asked} Asked */
/** @typedef {{time: number, bytes: number, isRelease: boolean, place: number, by: number, step: number}} Change `by`: the
 *   row of the allocation, -1: not recorded; `step`: -1: in none. */

const BEFORE = "(allocated before the recording)";

/** The marked steps of the part, or the part as a step without a name. @param {Asked} asked */
function growingSteps(asked) {
  const { rows: { annotations }, cut, answers } = asked;
  const paths = pathsOf(asked);
  const marked = stepsOf(asked, paths);
  const names = answers["annotation_times/name"]?.values[0] ?? [];
  const steps = marked.length
    ? marked.map((row) => ({ name: String(names[annotations.code[row]]), start: annotations.start[row],
      end: annotations.start[row] + annotations.length[row] }))
    : [{ name: "", start: cut.part.start, end: cut.part.end + 1 }];
  return { steps, paths, marked };
}

/** @param {Asked} asked */
function changesIn(asked) {
  const { memory } = asked.rows;
  const { steps, paths, marked } = growingSteps(asked);
  const stepAt = (/** @type {number} */ time) => {
    const at = countWhile(steps, ({ start }) => start <= time) - 1;
    return at >= 0 && time < steps[at].end ? at : -1;
  };
  const { held, unknown } = allocationsIn(asked);
  const changes = [
    ...held.map((each) => ({ time: each.start, bytes: each.bytes, isRelease: false, place: memory.place[each.row], by: each.row })),
    ...held.filter((each) => each.freed < Infinity)
      .map((each) => ({ time: each.freed, bytes: -each.bytes, isRelease: true, place: memory.place[each.row], by: each.row })),
    ...unknown.map((row) => ({ time: memory.start[row], bytes: -memory.bytes[row], isRelease: true, place: memory.place[row], by: -1 })),
  ].map((each) => ({ ...each, step: stepAt(each.time) }));
  return { steps, changes, held, paths, marks: new Set(marked.map((row) => /** @type {string} */ (paths.get(row)))) };
}

/** The steps of an answer that reach beyond the part. @param {Asked} asked @param {string} key of the answer */
export function numCutSteps(asked, key) {
  const { steps, marked } = growingSteps(asked);
  const { part } = asked.cut;
  const shown = key === "memory_growth/op" && steps.length > 1 ? steps.slice(1) : steps;
  return marked.length ? shown.filter(({ start, end }) => start < part.start || end > part.end).length : 0;
}

/** The largest amount held between two times, and the amount at the end; an amount holds from its time up to the next one.
 * @param {{time: number, held: number}[]} curve @param {number} start @param {number} end */
function heldBetween(curve, start, end) {
  const [first, after] = [start, end].map((time) => countWhile(curve, (each) => each.time < time));
  let most = curve[first]?.time === start ? 0 : Math.max(curve[first - 1]?.held ?? 0, 0);
  for (let at = first; at < after; at++) if (curve[at + 1]?.time !== curve[at].time) most = Math.max(most, curve[at].held);
  return { high_water_bytes: most, end_bytes: curve[after - 1]?.held ?? 0 };
}

/** @param {unknown} _ @param {Asked} asked */
export function growthByStep(_, asked) {
  const { steps, changes, held } = changesIn(asked);
  const { memory } = asked.rows;
  const curves = [...new Set(changes.map((each) => each.place))].sort((one, other) => one - other).map((place) => {
    const own = held.filter((each) => memory.place[each.row] === place);
    let now = 0;
    return { place, curve: [
      ...own.filter((each) => each.freed < Infinity).map((each) => ({ time: each.freed, bytes: -each.bytes })),
      ...own.map((each) => ({ time: each.start, bytes: each.bytes })),
    ].sort((one, other) => one.time - other.time).map(({ time, bytes }) => ({ time, held: now += bytes })) };
  });
  const ofSteps = new Map([...groupedBy(changes, (each) => each.step)].map(([step, own]) => [step, groupedBy(own, (each) => each.place)]));
  return steps.flatMap(({ name, start, end }, step) => curves.map(({ place, curve }) => {
    const own = ofSteps.get(step)?.get(place) ?? [];
    const [released, allocated] = [own.filter((each) => each.isRelease), own.filter((each) => !each.isRelease)];
    const bytes = (/** @type {typeof own} */ these) => these.reduce((sum, each) => sum + each.bytes, 0);
    return {
      mark_number: step, name, ...keysOf(asked.info.memory_places[place]), allocations: allocated.length, releases: released.length,
      allocated_bytes: bytes(allocated), released_bytes: 0 - bytes(released), growth_bytes: bytes(own), ...heldBetween(curve, start, end),
    };
  }));
}

/** @param {unknown} _ @param {Asked} asked */
export function growthByOp(_, asked) {
  const { steps, changes, paths, marks } = changesIn(asked);
  const { info, rows: { memory }, cut } = asked;
  const first = steps.length > 1 ? 1 : 0;
  const compared = steps.length - first;
  const pathOf = (/** @type {number} */ row) => {
    if (row < 0) return BEFORE;
    const path = (cut.isCaused[memory.correlation[row]] && paths.get(memory.annotation[row] - 1)) || NO_ANNOTATION;
    return pathWithin(path, marks) || NO_ANNOTATION;
  };
  const groups = [...groupedBy(changes.filter((each) => each.step >= first), ({ place, by }) => JSON.stringify([place, pathOf(by)]))];
  return groups.map(([key, own]) => {
    const [place, path] = JSON.parse(key);
    const sums = [...groupedBy(own, (each) => each.step).values()].map((these) => these.reduce((sum, each) => sum + each.bytes, 0));
    const growing = sums.filter((each) => each > 0).length;
    const growth = sums.reduce((sum, each) => sum + each, 0);
    const verdict = growing === compared ? "every step" : growing ? "some steps" : "no step";
    return {
      ...keysOf(info.memory_places[place]), path, growth_bytes: growth, growing_steps: growing, steps: compared,
      bytes_per_step: Math.floor(growth / compared), verdict: compared > 1 ? verdict : "",
    };
  }).sort((one, other) => other.growth_bytes - one.growth_bytes || one.device_id - other.device_id ||
    byCodePoints(one.memory, other.memory) || byCodePoints(one.pool, other.pool) || byCodePoints(one.path, other.path));
}
