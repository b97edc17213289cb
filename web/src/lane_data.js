// The slices of lanes, and those at a time.
import { useEffect, useState } from "preact/hooks";
import { loadLanes } from "./provider.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {import("./provider.js").LaneData} LaneData */
/** @typedef {{name: string, start: number, length: number}} Slice */

/** What the lanes of a step show, null until it is loaded, and why it cannot be loaded. Where a file has changed that is the one
 * before until then, with its step: lanes and names of the new one are others. @param {Step} step @param {number} place
 * @returns {{of: Step, data: LaneData | null, why: string}} */
export function useLaneData(step, place) {
  const [found, setFound] = useState({ of: step, data: /** @type {LaneData | null} */ (null), why: "" });
  useEffect(() => {
    let is = true;
    loadLanes(step, place).then(
      (data) => is && setFound({ of: step, data, why: "" }),
      (error) => is && setFound({ of: step, data: null, why: error.message }),
    );
    return () => { is = false; };
  }, [step.lanes]);
  return found.of.lanes === step.lanes || !found.data ? { ...found, of: step } : found;
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

/** The places of the slices of a lane that start before a time and end at another one or later, the last one first. Those
 * between them are passed over, however many they are. @param {LaneData} data @param {number} lane @param {number} before
 * @param {number} until */
export function* running(data, lane, before, until) {
  const { slices, first, outlasting } = data;
  for (let at = firstFrom(data, lane, before) - 1; at >= first[lane]; ) {
    const isRunning = slices.start[at] + slices.length[at] >= until;
    if (isRunning) yield at;
    at = isRunning ? at - 1 : outlasting[at];
  }
}

/** The slice of a lane at a time, of several the one that began last. @param {Step} step @param {LaneData} data
 * @param {number | undefined} lane @param {number} time @param {number} reach by which it may be missed */
export function sliceAt(step, data, lane, time, reach) {
  if (lane === undefined) return null;
  const { value: at } = running(data, lane, time + reach, time - reach).next();
  return at === undefined ? null : sliceOf(step, data, at);
}
