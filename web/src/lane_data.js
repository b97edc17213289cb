// The slices of lanes: those at a time, and those of a name.
import { useEffect, useState } from "preact/hooks";
import { loadLanes } from "./provider.js";
import { around, overlaps } from "./window.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {import("./provider.js").LaneData} LaneData */
/** @typedef {{name: string, start: number, length: number}} Slice */

/** What the lanes of a step show, null until it is loaded, and why it cannot be loaded. @param {Step} step @param {number} place */
export function useLaneData(step, place) {
  const [found, setFound] = useState({ data: /** @type {LaneData | null} */ (null), why: "" });
  useEffect(() => {
    let is = true;
    loadLanes(step, place).then(
      (data) => is && setFound({ data, why: "" }),
      (error) => is && setFound({ data: null, why: error.message }),
    );
    return () => { is = false; };
  }, [step.lanes]);
  return found;
}

/** The place of the first slice of a lane that starts at a time or later. @param {LaneData} data @param {number} lane @param {number} time */
export function firstFrom({ slices, first }, lane, time) {
  let [low, high] = [first[lane], first[lane + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @param {Step} step @param {LaneData} data @param {number} at @returns {Slice} */
export function sliceOf(step, { slices }, at) {
  return { name: step.names[slices.name[at]], start: slices.start[at], length: slices.length[at] };
}

/** The slice of a lane at a time, of several the one that began last. @param {Step} step @param {LaneData} data
 * @param {number | undefined} lane @param {number} time @param {number} reach by which it may be missed */
export function sliceAt(step, data, lane, time, reach) {
  if (lane === undefined) return null;
  const { slices, first } = data;
  for (let at = firstFrom(data, lane, time + reach) - 1, tried = 0; at >= first[lane] && tried < 2000; at--, tried++) {
    if (slices.start[at] + slices.length[at] >= time - reach) return sliceOf(step, data, at);
  }
  return null;
}

/** Where the longest slice of a name is, with as much room around it; null: none of that name is in the file.
 * @param {Step} step @param {number} place @param {string} kind of the lane @param {string} name @param {number | null} device
 * @param {import("./window.js").Part | null} part that it overlaps; null: any */
export async function longestOf(step, place, kind, name, device, part) {
  const { slices } = await loadLanes(step, place);
  let found = -1;
  for (let at = 0; at < slices.name.length; at++) {
    if (found >= 0 && slices.length[at] <= slices.length[found]) continue;
    if (part && !overlaps(slices.start[at], slices.start[at] + slices.length[at], part)) continue;
    const lane = step.lanes[slices.lane[at]];
    if (lane.kind === kind && step.names[slices.name[at]] === name && (device === null || lane.device_id === device)) found = at;
  }
  return found < 0 ? null : around(step, slices.start[found], slices.start[found] + slices.length[found]);
}
