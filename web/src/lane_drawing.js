// How lanes look: the axis, the bins and slices of each lane, the moments of losses, and what was picked.
import { printable, timeText } from "./numbers.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {import("./provider.js").Slices} Slices */
/** @typedef {{start: number, end: number}} Part */

/** The colour of losses, which a triangle tells as well. */
const LOST = "#d0342c";
export const ROW = 24;
export const AXIS = 22;
/** Colours that people with any colour vision tell apart (Okabe and Ito), dark enough for white letters. */
const COLOURS = ["#0072b2", "#b34700", "#00785a", "#8f4e8b", "#5b6abf", "#7a6a00", "#a13b54", "#3f6f7a"];

/** The place of the first slice of a lane that starts at a time or later. @param {Slices} slices @param {number} low @param {number} high @param {number} time */
export function lowerBound(slices, low, high, time) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A frame around the slice that was picked by keys. @param {CanvasRenderingContext2D} context @param {{slices: Slices}} data
 * @param {{row: number, at: number}} picked @param {Part} part @param {number} width */
export function drawPicked(context, { slices }, picked, part, width) {
  const scale = width / (part.end - part.start);
  const left = (slices.start[picked.at] - part.start) * scale;
  context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--pico-color") || "#000";
  context.lineWidth = 2;
  context.strokeRect(left - 1, AXIS + picked.row * ROW + 1, Math.max(slices.length[picked.at] * scale, 2) + 2, ROW - 2);
  context.lineWidth = 1;
}

/** @param {CanvasRenderingContext2D} context @param {Step} step @param {any[]} rows @param {any} data @param {Part} part
 * @param {number} width @param {[number, number] | null} drag */
export function draw(context, step, rows, data, part, width, drag) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--pico-color") || "#373c44";
  const line = style.getPropertyValue("--pico-muted-border-color") || "#e7eaf0";
  const perPixel = (part.end - part.start) / width;
  context.clearRect(0, 0, width, AXIS + rows.length * ROW);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawAxis(context, part, width, rows.length, ink, line);
  if (data) {
    rows.forEach((lane, row) => {
      const top = AXIS + row * ROW;
      const { slices, first } = data;
      const [low, high] = [first[lane.at], first[lane.at + 1]];
      const seen = lowerBound(slices, low, high, part.end) - lowerBound(slices, low, high, part.start);
      const isWhole = high - low === lane.slices;
      if (lane.kind === "device" || !isWhole || seen > 2 * width) drawBins(context, step, data, lane.at, top, part, width);
      if (lane.kind !== "device" && seen <= 2 * width) drawSlices(context, step, data, lane.at, top, part, width);
    });
  }
  drawLosses(context, step, part, width, rows.length);
  if (drag) {
    const [from, to] = [...drag].sort((a, b) => a - b);
    context.fillStyle = "rgba(128, 128, 160, 0.35)";
    context.fillRect(from, 0, to - from, AXIS + rows.length * ROW);
  }
}

/** A dashed line with a triangle where something was lost. @param {CanvasRenderingContext2D} context @param {Step} step
 * @param {Part} part @param {number} width @param {number} count */
function drawLosses(context, step, part, width, count) {
  context.strokeStyle = context.fillStyle = LOST;
  for (const at of Object.values(step.loss_times).flat()) {
    if (at < part.start || at > part.end) continue;
    const x = Math.round(((at - part.start) / (part.end - part.start)) * width) + 0.5;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(x, AXIS);
    context.lineTo(x, AXIS + count * ROW);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x - 4, AXIS - 7);
    context.lineTo(x + 4, AXIS - 7);
    context.lineTo(x, AXIS);
    context.fill();
  }
}

/** @param {CanvasRenderingContext2D} context @param {Part} part @param {number} width @param {number} count @param {string} ink @param {string} line */
function drawAxis(context, part, width, count, ink, line) {
  const rough = ((part.end - part.start) * 110) / width;
  const power = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? 10 * power;
  context.strokeStyle = line;
  context.fillStyle = ink;
  context.beginPath();
  for (let at = Math.ceil(part.start / tick) * tick; at <= part.end; at += tick) {
    const x = Math.round(((at - part.start) / (part.end - part.start)) * width) + 0.5;
    context.moveTo(x, AXIS - 6);
    context.lineTo(x, AXIS + count * ROW);
    const text = timeText(Math.round(at));
    context.textAlign = x < 20 ? "left" : x > width - 30 ? "right" : "center";
    context.fillText(text, x, AXIS / 2 - 2);
  }
  for (let row = 0; row <= count; row++) {
    context.moveTo(0, AXIS + row * ROW + 0.5);
    context.lineTo(width, AXIS + row * ROW + 0.5);
  }
  context.stroke();
  context.textAlign = "left";
}

/** @type {Record<string, string>} */
const KIND_COLOURS = { device: "#5b6abf", stream: "#0072b2", calls: "#b34700", annotations: "#00785a", tracer: "#a13b54" };

/** @param {CanvasRenderingContext2D} context @param {Step} step @param {any} data @param {number} lane @param {number} top
 * @param {Part} part @param {number} width */
function drawBins(context, step, data, lane, top, part, width) {
  const length = step.length_ns / step.bins;
  const from = Math.max(0, Math.floor(part.start / length));
  const to = Math.min(step.bins, Math.ceil(part.end / length));
  context.fillStyle = KIND_COLOURS[step.lanes[lane].kind];
  const scale = width / (part.end - part.start);
  for (let bin = from; bin < to; bin++) {
    const share = data.bins[lane * step.bins + bin] / step.full;
    if (!share) continue;
    const tall = Math.max(2, share * (ROW - 4));
    const left = Math.floor((bin * length - part.start) * scale);
    const right = Math.max(Math.ceil(((bin + 1) * length - part.start) * scale), left + 1);
    context.fillRect(left, top + ROW - 2 - tall, right - left, tall);
  }
}

/** @param {CanvasRenderingContext2D} context @param {Step} step @param {any} data @param {number} lane @param {number} top
 * @param {Part} part @param {number} width */
function drawSlices(context, step, data, lane, top, part, width) {
  const { slices, first } = data;
  const scale = width / (part.end - part.start);
  const [low, high] = [first[lane], first[lane + 1]];
  let at = lowerBound(slices, low, high, part.start);
  for (let back = 0; back < 200 && at > low; back++, at--) if (slices.start[at - 1] + slices.length[at - 1] < part.start && back > 20) break;
  let drawnTo = -1;
  for (; at < high && slices.start[at] < part.end; at++) {
    const x = (slices.start[at] - part.start) * scale;
    const wide = slices.length[at] * scale;
    if (x + wide < 0 || (wide < 1 && x + wide < drawnTo)) continue;
    const name = slices.name[at];
    context.fillStyle = COLOURS[name % COLOURS.length];
    const left = Math.max(x, -1);
    const shownWidth = Math.max(Math.min(x + wide, width + 1) - left, 0.8);
    context.fillRect(left, top + 2, shownWidth - (shownWidth > 3 ? 1 : 0), ROW - 4);
    drawnTo = left + shownWidth;
    if (shownWidth > 36) {
      context.save();
      context.beginPath();
      context.rect(left, top, shownWidth - 4, ROW);
      context.clip();
      context.fillStyle = "#fff";
      context.fillText(printable(step.names[name]), Math.max(left, 0) + 4, top + ROW / 2);
      context.restore();
    }
  }
}
