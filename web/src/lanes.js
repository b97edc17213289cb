// Lanes on a canvas: how dense each was, and every slice once they are wide enough. Drag to choose a window.
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { AXIS, draw, drawPicked, lowerBound, ROW } from "./lane_drawing.js";
import { loadBins, loadSlices } from "./provider.js";
import { chooseWindow, chosenWindow } from "./state.js";
import { exact, grouped, printable, timeText } from "./numbers.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {import("./provider.js").Slices} Slices */
/** @typedef {{start: number, end: number}} Part */

const SHORTEST = 10; // ns: no window is shorter

/** By the lanes of the step. @type {WeakMap<object, Promise<{bins: Uint8Array, slices: Slices, first: Uint32Array}>>} */
const loaded = new WeakMap();

/** What is drawn of a step, loaded once. @param {Step} step @param {number} place */
export function laneData(step, place) {
  let found = loaded.get(step.lanes);
  if (!found) {
    found = Promise.all([loadBins(step, place), loadSlices(step, place)]).then(([bins, slices]) => {
      const first = new Uint32Array(step.lanes.length + 1);
      for (const lane of slices.lane) first[lane + 1]++;
      for (let lane = 0; lane < step.lanes.length; lane++) first[lane + 1] += first[lane];
      return { bins, slices, first };
    });
    loaded.set(step.lanes, found);
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
  }, [step.lanes]);
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
    () => step.lanes.flatMap((lane, at) => (!kinds || kinds.includes(lane.kind) ? [{ ...lane, at }] : [])), [step.lanes]);
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
