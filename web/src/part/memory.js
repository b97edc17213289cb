// Memory that was held in a part of a step (collector/analysis/memory.py).
import { overlaps } from "../window.js";
import { byCodePoints, groupedBy } from "./groups.js";
import { NO_ANNOTATION, pathsOf } from "./ops.js";

/** @typedef {import("./answers.js").Asked} Asked */
/** @typedef {{row: number, start: number, freed: number, freedBy: number, bytes: number}} Held An allocation; `freed` is
 *   Infinity if it is never freed, `freedBy` the row of the release, -1: none. */

/** The allocations of a part, and the rows that release memory whose allocation is not in it. @param {Asked} asked */
export function allocationsIn({ rows: { memory }, cut }) {
  /** @type {Held[]} */
  const held = [];
  /** @type {number[]} */
  const unknown = [];
  cut.memory.forEach((row, at) => {
    const [before, next] = [cut.memory[at - 1], cut.memory[at + 1]];
    if (memory.allocates[row]) {
      const hasNext = next !== undefined && memory.address[next] === memory.address[row];
      held.push({
        row, start: memory.start[row], freed: hasNext ? memory.start[next] : Infinity,
        freedBy: hasNext && !memory.allocates[next] ? next : -1, bytes: memory.bytes[row],
      });
    } else if (before === undefined || memory.address[before] !== memory.address[row] || !memory.allocates[before]) {
      unknown.push(row);
    }
  });
  return { held, unknown };
}

/** The number of operations in a part that no answer counts, as their kind is unknown or their size impossible. @param {Asked} asked */
export function oddOperationsIn({ info, cut: { part } }) {
  return info.odd_operations.filter((time) => overlaps(time, time, part)).length;
}

/** For each place its allocations, its numbers of releases, and its high water. @param {Asked} asked */
function heldIn(asked) {
  const { info, rows: { memory }, cut } = asked;
  const places = info.memory_places.map((place) => ({
    place, held: /** @type {Held[]} */ ([]), frees: 0, unknown: 0, used: 0, reserved: 0, high: 0, at: cut.part.start,
  }));
  const uses = (/** @type {number} */ row, /** @type {typeof places[0]} */ of) => {
    of.used = Math.max(of.used, memory.used[row]);
    of.reserved = Math.max(of.reserved, memory.reserved[row]);
  };
  const { held, unknown } = allocationsIn(asked);
  for (const each of held) {
    const own = places[memory.place[each.row]];
    own.held.push(each);
    uses(each.row, own);
    if (each.freedBy >= 0) {
      own.frees++;
      uses(each.freedBy, own);
    }
  }
  for (const row of unknown) {
    places[memory.place[row]].unknown++;
    uses(row, places[memory.place[row]]);
  }
  for (const own of places) {
    const changes = [
      ...own.held.filter((each) => each.freed < Infinity).map((each) => ({ time: each.freed, bytes: -each.bytes })),
      ...own.held.map((each) => ({ time: each.start, bytes: each.bytes })),
    ].sort((one, other) => one.time - other.time); // releases first, as sorting keeps the order of equals
    let now = 0;
    let most = -Infinity;
    for (const { time, bytes } of changes) {
      now += bytes;
      if (now > most) [most, own.at] = [now, time];
    }
    own.held.forEach((each) => { own.high += isHeld(each, own.at) ? each.bytes : 0; });
  }
  return places.filter((own) => own.held.length || own.unknown);
}

/** @param {Held} each @param {number} time */
function isHeld(each, time) {
  return each.start <= time && each.freed > time;
}

/** @param {Held[]} held */
function bytesOf(held) {
  return held.reduce((sum, each) => sum + each.bytes, 0);
}

/** @param {[number, string, string]} place */
export function keysOf([device_id, memory, pool]) {
  return { device_id, memory, pool };
}

/** @param {unknown} _ @param {Asked} asked */
export function memoryByPool(_, asked) {
  return heldIn(asked).map((own) => ({
    ...keysOf(own.place),
    allocations: own.held.length,
    frees: own.frees,
    unknown_frees: own.unknown,
    allocated_bytes: bytesOf(own.held),
    high_water_bytes: own.high,
    high_water_ns: own.at - asked.cut.part.start,
    end_bytes: bytesOf(own.held.filter((each) => each.freed === Infinity)),
    pool_used_bytes: own.used,
    pool_reserved_bytes: own.reserved,
  }));
}

/** @param {unknown} _ @param {Asked} asked */
export function memoryByOp(_, asked) {
  const paths = pathsOf(asked);
  const { memory } = asked.rows;
  const pathOf = (/** @type {Held} */ { row }) =>
    (asked.cut.isCaused[memory.correlation[row]] && paths.get(memory.annotation[row] - 1)) || NO_ANNOTATION;
  return heldIn(asked).flatMap((own) =>
    [...groupedBy(own.held.filter((each) => isHeld(each, own.at)), pathOf)]
      .map(([path, held]) => ({ path, allocations: held.length, live_bytes: bytesOf(held) }))
      .sort((one, other) => other.live_bytes - one.live_bytes || byCodePoints(one.path, other.path))
      .map((each) => ({ ...keysOf(own.place), ...each, share: own.high ? each.live_bytes / own.high : 0 })));
}
