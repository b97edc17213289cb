// The slices of lanes, and those at a time.
import { useEffect, useState } from "preact/hooks";
import { loadLanes } from "./provider.js";

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
