// How lanes look: the busy shares and slices of each, the times of losses, and the slice that was picked.
import { firstFrom, running } from "./lane_data.js";
import { printable } from "./numbers.js";

/** @typedef {{row: number, at: number}} Picked a slice by its row and its place among all slices */
/** @typedef {{context: CanvasRenderingContext2D, step: import("./provider.js").Step, rows: {at: number, kind: string, slices: number}[],
 *   data: import("./provider.js").LaneData, picked: Picked | null, start: number, end: number, width: number, ink: string}} Drawing */

export const ROW = 24;
/** Pixels of a bin from which on a device's lane shows its work itself, where the page has all of it. */
const BIN_PIXELS = 4;
/** The colour of losses, which a triangle tells as well. */
const LOST = "#d0342c";
/** Colours that people with any colour vision tell apart (Okabe and Ito), dark enough for white letters. */
const COLOURS = ["#0072b2", "#b34700", "#00785a", "#8f4e8b", "#5b6abf", "#7a6a00", "#a13b54", "#3f6f7a"];
/** @type {Record<string, string>} */
const KIND_COLOURS = { device: "#5b6abf", stream: "#0072b2", calls: "#b34700", annotations: "#00785a", tracer: "#a13b54" };

/** Draws rows of lanes from the top left corner on. @param {Drawing} drawing */
export function draw(drawing) {
  const { context, step, rows, data, picked, start, end, width, ink } = drawing;
  const scale = width / (end - start);
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.font = "12px system-ui, sans-serif";
  rows.forEach((lane, row) => {
    const shown = lane.kind === "device" ? streamsOf(step, lane.at) : [lane.at];
    const seen = shown.reduce((sum, at) => sum + firstFrom(data, at, end) - firstFrom(data, at, start), 0);
    const isDense = seen > 2 * width;
    const isWhole = shown.every((at) => data.first[at + 1] - data.first[at] >= step.lanes[at].slices) && !(lane.kind === "device" && step.lanes_left_out);
    const isCloser = (step.length_ns / step.bins) * scale > BIN_PIXELS; // than the bins tell; of a device they do not overlap
    const isSliced = !isDense && (lane.kind !== "device" || (isCloser && isWhole));
    if (!isSliced || !isWhole) drawBins(drawing, lane.at, row * ROW, scale);
    if (isSliced) for (const at of shown) drawSlices(drawing, at, row * ROW, scale, lane.kind === "device" ? KIND_COLOURS.device : "");
  });
  context.strokeStyle = context.fillStyle = LOST;
  for (const time of Object.values(step.loss_times).flat()) {
    if (time >= start && time <= end) drawLoss(context, Math.round((time - start) * scale) + 0.5, rows.length * ROW);
  }
  if (!picked) return;
  context.strokeStyle = ink;
  context.lineWidth = 2;
  const { slices } = data;
  context.strokeRect((slices.start[picked.at] - start) * scale - 1, picked.row * ROW + 1, Math.max(slices.length[picked.at] * scale, 2) + 2, ROW - 2);
}

/** The lanes of the streams of a device. @param {import("./provider.js").Step} step @param {number} device its lane */
function streamsOf({ lanes }, device) {
  return lanes.flatMap((lane, at) => (lane.kind === "stream" && lane.device_id === lanes[device].device_id ? [at] : []));
}

/** A dashed line with a triangle. @param {CanvasRenderingContext2D} context @param {number} x @param {number} height */
function drawLoss(context, x, height) {
  context.setLineDash([3, 3]);
  context.stroke(new Path2D(`M${x} 0V${height}`));
  context.setLineDash([]);
  context.fill(new Path2D(`M${x - 4} -7h8L${x} 0z`));
}

/** @param {Drawing} drawing @param {number} lane @param {number} top @param {number} scale */
function drawBins({ context, step, data, start, end }, lane, top, scale) {
  const length = step.length_ns / step.bins;
  context.fillStyle = KIND_COLOURS[step.lanes[lane].kind];
  for (let bin = Math.max(0, Math.floor(start / length)); bin < Math.min(step.bins, Math.ceil(end / length)); bin++) {
    const share = data.bins[lane * step.bins + bin] / step.full;
    if (!share) continue;
    const tall = Math.max(2, share * (ROW - 4));
    const left = Math.floor((bin * length - start) * scale);
    context.fillRect(left, top + ROW - 2 - tall, Math.max(Math.ceil(((bin + 1) * length - start) * scale) - left, 1), tall);
  }
}

/** @param {Drawing} drawing @param {number} lane @param {number} top @param {number} scale
 * @param {string} colour of all of them, which then have no names; "": each has that of its name */
function drawSlices({ context, step, data, start, end, width }, lane, top, scale, colour) {
  const { slices } = data;
  const places = [...running(data, lane, start, start)].reverse();
  for (let at = firstFrom(data, lane, start), after = firstFrom(data, lane, end); at < after; at++) places.push(at);
  let drawnTo = -1;
  for (const at of places) {
    const x = (slices.start[at] - start) * scale;
    const right = x + slices.length[at] * scale;
    if (right - x < 1 && right < drawnTo) continue;
    const name = slices.name[at];
    const left = Math.max(x, -1);
    const wide = Math.max(Math.min(right, width + 1) - left, 0.8);
    context.fillStyle = colour || COLOURS[name % COLOURS.length];
    context.fillRect(left, top + 2, wide - (wide > 3 && !colour ? 1 : 0), ROW - 4);
    drawnTo = left + wide;
    if (wide <= 36 || colour) continue;
    context.save();
    context.beginPath();
    context.rect(left, top, wide - 4, ROW);
    context.clip();
    context.fillStyle = "#fff";
    context.fillText(printable(step.names[name]), Math.max(left, 0) + 4, top + ROW / 2);
    context.restore();
  }
}
