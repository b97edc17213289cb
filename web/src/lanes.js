// Lanes on a canvas: how dense each was, and every slice once they are wide enough. Drag to choose a window.
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { loadBins, loadSlices } from "./provider.js";
import { chooseWindow, chosenWindow } from "./state.js";
import { exact, grouped, printable, timeText } from "./numbers.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {import("./provider.js").Slices} Slices */
/** @typedef {{start: number, end: number}} Part */

const ROW = 24;
const AXIS = 22;
const SHORTEST = 10; // ns: no window is shorter
/** Colours that people with any colour vision tell apart (Okabe and Ito), dark enough for white letters. */
const COLOURS = ["#0072b2", "#b34700", "#00785a", "#8f4e8b", "#5b6abf", "#7a6a00", "#a13b54", "#3f6f7a"];

/** @type {WeakMap<Step, Promise<{bins: Uint8Array, slices: Slices, first: Uint32Array}>>} */
const loaded = new WeakMap();

/** What is drawn of a step, loaded once. @param {Step} step @param {number} place */
export function laneData(step, place) {
  let found = loaded.get(step);
  if (!found) {
    found = Promise.all([loadBins(step, place), loadSlices(step, place)]).then(([bins, slices]) => {
      const first = new Uint32Array(step.lanes.length + 1);
      for (const lane of slices.lane) first[lane + 1]++;
      for (let lane = 0; lane < step.lanes.length; lane++) first[lane + 1] += first[lane];
      return { bins, slices, first };
    });
    loaded.set(step, found);
  }
  return found;
}

/** Where the longest slice of a name is, with as much room around it; null: none of that name is in the file.
 * @param {Step} step @param {number} place @param {string} kind of the lane
 * @param {string} name @param {number | null} device @returns {Promise<Part | null>} */
export async function longestOf(step, place, kind, name, device) {
  const { slices } = await laneData(step, place);
  let found = -1;
  for (let at = 0; at < slices.name.length; at++) {
    if (found >= 0 && slices.length[at] <= slices.length[found]) continue;
    const lane = step.lanes[slices.lane[at]];
    if (lane.kind === kind && step.names[slices.name[at]] === name && (device === null || lane.device_id === device)) found = at;
  }
  return found < 0 ? null : around(step, slices.start[found], slices.start[found] + slices.length[found]);
}

/** A window with a part of the step in its middle. @param {Step} step @param {number} start @param {number} end @returns {Part} */
export function around(step, start, end) {
  const room = Math.max(end - start, SHORTEST);
  return { start: Math.max(0, start - room), end: Math.min(step.length_ns, end + room) };
}

/** @param {Step} step @param {number} place */
export function useLaneData(step, place) {
  const [data, setData] = useState(/** @type {Awaited<ReturnType<typeof laneData>> | null} */ (null));
  useEffect(() => {
    let is = true;
    laneData(step, place).then((found) => is && setData(found));
    return () => { is = false; };
  }, [step]);
  return data;
}

/** @param {{step: Step, place: number, kinds?: string[], hint?: boolean}} props */
export function Lanes({ step, place, kinds, hint = true }) {
  const data = useLaneData(step, place);
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [width, setWidth] = useState(0);
  const [over, setOver] = useState(/** @type {{x: number, y: number, row: number} | null} */ (null));
  const [drag, setDrag] = useState(/** @type {[number, number] | null} */ (null));
  const [theme, setTheme] = useState(0);
  const [picked, setPicked] = useState(/** @type {{row: number, at: number} | null} */ (null));
  const rows = useMemo(
    () => step.lanes.flatMap((lane, at) => (!kinds || kinds.includes(lane.kind) ? [{ ...lane, at }] : [])), [step]);
  const part = chosenWindow.value ?? { start: 0, end: Math.max(step.length_ns, 1) };
  const height = AXIS + rows.length * ROW;

  useEffect(() => {
    const element = /** @type {HTMLCanvasElement} */ (canvas.current);
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setTheme((before) => before + 1);
    dark.addEventListener("change", change);
    const wheel = (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const now = chosenWindow.value ?? { start: 0, end: step.length_ns };
      const at = now.start + ((now.end - now.start) * event.offsetX) / element.clientWidth;
      zoom(step, at, Math.exp(event.deltaY / 300));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", change);
      element.removeEventListener("wheel", wheel);
    };
  }, [place]);

  useEffect(() => {
    const element = canvas.current;
    if (!element || !width) return;
    const scale = devicePixelRatio || 1;
    element.width = width * scale;
    element.height = height * scale;
    const context = /** @type {CanvasRenderingContext2D} */ (element.getContext("2d"));
    context.scale(scale, scale);
    draw(context, step, rows, data, part, width, drag);
    if (picked && data) drawPicked(context, data, picked, part, width);
  }, [data, width, part.start, part.end, drag, theme, rows, picked]);

  const timeAt = (/** @type {number} */ x) => part.start + ((part.end - part.start) * x) / width;
  const hovered = over && data ? sliceAt(step, data, rows[over.row]?.at, timeAt(over.x), (part.end - part.start) / width) : null;
  const found = hovered ?? (picked && data ? sliceOf(step, data, picked.at) : null);
  /** Picks the lane above or below, or the slice before or after. @param {number} down @param {number} on */
  const pick = (down, on) => {
    if (!data) return;
    const { slices, first } = data;
    const now = picked ?? { row: rows.findIndex((lane) => first[lane.at] < first[lane.at + 1]), at: -1 };
    let row = now.row;
    do row += down; while (down && rows[row] && first[rows[row].at] === first[rows[row].at + 1]);
    if (!rows[row]) return;
    const [low, high] = [first[rows[row].at], first[rows[row].at + 1]];
    const from = !picked ? part.start : slices.start[now.at];
    let at = picked && !down ? now.at + on : lowerBound(slices, low, high, from);
    at = Math.max(low, Math.min(at, high - 1));
    setOver(null);
    setPicked({ row, at });
    const [start, end] = [slices.start[at], slices.start[at] + slices.length[at]];
    if (end <= part.start || start >= part.end) {
      const half = (part.end - part.start) / 2;
      move(step, part, (start + end) / 2 - half - part.start);
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const length = part.end - part.start;
    const middle = (part.start + part.end) / 2;
    const moves = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: () => move(step, part, -length / 4),
      ArrowRight: () => move(step, part, length / 4),
      "+": () => zoom(step, middle, 0.5),
      "=": () => zoom(step, middle, 0.5),
      "-": () => zoom(step, middle, 2),
      Home: () => chooseWindow(null),
      ArrowUp: () => pick(-1, 0),
      ArrowDown: () => pick(picked ? 1 : 0, 0),
      n: () => pick(0, 1),
      p: () => pick(0, -1),
      Enter: () => { if (found) chooseWindow(around(step, found.start, found.start + found.length)); },
    });
    if (moves[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      moves[event.key]();
    }
  };
  return html`
    <div class="lanes">
      <ul class="lane-names" style=${{ paddingTop: `${AXIS}px` }}>${rows.map((lane) => html`
        <li style=${{ height: `${ROW}px` }} title=${printable(lane.name)}>${printable(lane.name)}</li>`)}</ul>
      <div class="drawn"><canvas ref=${canvas} style=${{ height: `${height}px` }} tabindex="0" role="img"
        aria-label=${`${rows.length} lanes from ${timeText(part.start)} to ${timeText(part.end)}. Left and right move, plus and minus zoom, Home shows all; up and down pick a lane, n and p the next and previous slice, Enter shows it.`}
        onKeyDown=${onKey}
        onPointerDown=${(/** @type {PointerEvent} */ event) => {
          /** @type {HTMLElement} */ (event.target).setPointerCapture(event.pointerId);
          setDrag([event.offsetX, event.offsetX]);
        }}
        onPointerMove=${(/** @type {PointerEvent} */ event) => {
          setOver({ x: event.offsetX, y: event.offsetY, row: Math.floor((event.offsetY - AXIS) / ROW) });
          if (drag) setDrag([drag[0], event.offsetX]);
        }}
        onPointerUp=${() => {
          if (drag && Math.abs(drag[1] - drag[0]) > 3) {
            const [from, to] = [...drag].sort((a, b) => a - b).map(timeAt);
            narrow(step, from, to);
          } else if (hovered) chooseWindow(around(step, hovered.start, hovered.start + hovered.length));
          setDrag(null);
        }}
        onPointerLeave=${() => setOver(null)}
        onDblClick=${() => chooseWindow(null)}></canvas>
      ${hovered && over && !drag && html`
        <div class="hovered" aria-hidden="true" style=${{ left: `${Math.min(over.x, width - 260)}px`, top: `${AXIS + (over.row + 1) * ROW + 4}px` }}>
          <strong>${printable(hovered.name)}</strong><br />${exact(hovered.length, "ns")}<br />from ${exact(hovered.start, "ns")}</div>`}
      </div>
    </div>
    <p class="under-lanes" role="status">${found
      ? html`<strong>${printable(found.name)}</strong> ${timeText(found.length)} (${exact(found.length, "ns")}), from ${timeText(found.start)} (${exact(found.start, "ns")}) on`
      : !data ? "Loading the lanes …"
      : hint ? html`Drag to choose a window, Ctrl and wheel to zoom, click a slice to see it close, double click for the whole step.` : ""}</p>`;
}

/** @param {Step} step @param {number} from @param {number} to */
function narrow(step, from, to) {
  const start = Math.max(0, Math.min(from, step.length_ns - SHORTEST));
  chooseWindow({ start, end: Math.min(step.length_ns, Math.max(to, start + SHORTEST)) });
}

/** @param {Step} step @param {number} at @param {number} factor */
function zoom(step, at, factor) {
  const now = chosenWindow.value ?? { start: 0, end: step.length_ns };
  if ((now.end - now.start) * factor >= step.length_ns) return chooseWindow(null);
  narrow(step, at - (at - now.start) * factor, at + (now.end - at) * factor);
}

/** @param {Step} step @param {Part} part @param {number} by */
function move(step, part, by) {
  const kept = Math.max(-part.start, Math.min(by, step.length_ns - part.end));
  narrow(step, part.start + kept, part.end + kept);
}

/** The place of the first slice of a lane that starts at a time or later. @param {Slices} slices @param {number} low @param {number} high @param {number} time */
function lowerBound(slices, low, high, time) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The slice under a moment, of several the one that began last. @param {Step} step @param {any} data @param {number | undefined} lane @param {number} time @param {number} reach */
function sliceAt(step, data, lane, time, reach) {
  if (lane === undefined) return null;
  const { slices, first } = data;
  const [low, high] = [first[lane], first[lane + 1]];
  for (let at = lowerBound(slices, low, high, time + reach) - 1, tried = 0; at >= low && tried < 2000; at--, tried++) {
    if (slices.start[at] + slices.length[at] >= time - reach) return sliceOf(step, data, at);
  }
  return null;
}

/** @param {Step} step @param {{slices: Slices}} data @param {number} at */
function sliceOf(step, { slices }, at) {
  return { name: step.names[slices.name[at]], start: slices.start[at], length: slices.length[at] };
}

/** A frame around the slice that was picked by keys. @param {CanvasRenderingContext2D} context @param {{slices: Slices}} data
 * @param {{row: number, at: number}} picked @param {Part} part @param {number} width */
function drawPicked(context, { slices }, picked, part, width) {
  const scale = width / (part.end - part.start);
  const left = (slices.start[picked.at] - part.start) * scale;
  context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--pico-color") || "#000";
  context.lineWidth = 2;
  context.strokeRect(left - 1, AXIS + picked.row * ROW + 1, Math.max(slices.length[picked.at] * scale, 2) + 2, ROW - 2);
  context.lineWidth = 1;
}

/** @param {CanvasRenderingContext2D} context @param {Step} step @param {any[]} rows @param {any} data @param {Part} part
 * @param {number} width @param {[number, number] | null} drag */
function draw(context, step, rows, data, part, width, drag) {
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
  if (drag) {
    const [from, to] = [...drag].sort((a, b) => a - b);
    context.fillStyle = "rgba(128, 128, 160, 0.35)";
    context.fillRect(from, 0, to - from, AXIS + rows.length * ROW);
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
const KIND_COLOURS = { device: "#5b6abf", stream: "#0072b2", calls: "#b34700", annotations: "#00785a" };

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

/** Words on what the file holds of the slices. @param {Step} step */
export function held(step) {
  const all = step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  const parts = [];
  if (step.slices < all) {
    parts.push(`This file holds the longest ${grouped(step.slices)} of ${grouped(all)} slices, and of all others how dense they were: --max-size gives room for more.`);
  }
  if (step.lanes_left_out) parts.push(`${grouped(step.lanes_left_out)} lanes with the least in them are left out.`);
  return parts.join(" ");
}
