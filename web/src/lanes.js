// Lanes on a canvas: how dense each was, and every slice once they are wide enough. Drag to choose a window.
import { html } from "htm/preact";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { firstFrom, sliceAt, sliceOf, useLaneData } from "./lane_data.js";
import { draw, ROW } from "./lane_drawing.js";
import { exact, printable, timeText } from "./numbers.js";
import { axisOf, colour, onKeys, takeMarked, usePlot } from "./plot.js";
import { chooseWindow, chosenWindow } from "./state.js";
import { endTexts, ticks } from "./ticks.js";
import { around, between, moved, zoomed } from "./window.js";

const AXIS = 22;
const KEYS = "Left and right move, plus and minus zoom, Home shows all; up and down pick a lane, n and p the next and previous slice, Enter shows it.";

/** A time as people read it, and all of its digits. @param {number} time */
const bothTexts = (time) => `${timeText(time)} (${exact(time, "ns")})`;

/** The name of a lane in two parts, of which the first may be cut: what a lane of a thread shows stands at its end.
 * @param {import("./provider.js").LaneInfo} lane */
function inParts({ kind, name }) {
  const end = kind === "calls" || kind === "annotations" ? name.search(/ (CUDA calls|annotations( \d+)?)$/) : -1;
  return end < 0 ? [name] : [name.slice(0, end), name.slice(end)];
}

/** The part of a step that is shown at this moment; another key may have come since it was drawn.
 * @param {import("./provider.js").Step} step */
const partOf = (step) => chosenWindow.value ?? { start: 0, end: Math.max(step.length_ns, 1) };

/** @param {import("./provider.js").Step} step @param {import("./provider.js").LaneInfo} lane */
function titleOf({ models }, { kind, name, device_id: device }) {
  const model = kind === "device" && models.find(([known]) => known === device)?.[1];
  return printable(model ? `${name}: ${model}` : name);
}

/** @param {{step: import("./provider.js").Step, place: number, kinds?: string[], hint?: boolean}} props */
export function Lanes({ step: wanted, place, kinds, hint = true }) {
  const { of: step, data, why } = useLaneData(wanted, place);
  const rows = useMemo(() => step.lanes.flatMap((lane, at) => (!kinds || kinds.includes(lane.kind) ? [{ ...lane, at }] : [])), [step.lanes]);
  const overNow = useSignal(/** @type {{x: number, row: number} | null} */ (null));
  const pickedNow = useSignal(/** @type {import("./lane_drawing.js").Picked | null} */ (null));
  const drawnRows = useRef(rows);
  if (drawnRows.current !== rows) { // of a file that has changed
    drawnRows.current = rows;
    overNow.value = pickedNow.value = null;
  }
  const [over, picked] = [overNow.value, pickedNow.value];
  const part = partOf(step);
  const [wide, setWide] = useState(0);
  const times = ticks(part, wide);
  const latest = useRef({ step, rows, data, picked, part, times });
  latest.current = { step, rows, data, picked, part, times };
  const [element, plot] = usePlot(() => {
    const measure = (/** @type {any} */ self) => setWide(self.over.clientWidth);
    const onDraw = (/** @type {any} */ { ctx: context, bbox }) => {
      const { step, rows, data, picked, part } = latest.current;
      if (!data) return;
      context.save();
      context.translate(bbox.left, bbox.top);
      context.scale(devicePixelRatio, devicePixelRatio);
      draw({ context, step, rows, data, picked, ...part, width: bbox.width / devicePixelRatio, ink: colour("--pico-color") });
      context.restore();
    };
    const options = {
      height: AXIS + rows.length * ROW,
      padding: [0, 0, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false }, x: false, y: false, points: { show: false }, bind: { dblclick: () => () => chooseWindow(null) } },
      scales: { x: { time: false, range: (/** @type {any} */ _, /** @type {number} */ start, /** @type {number} */ end) => [start, end] }, y: { range: [0, rows.length] } },
      axes: [
        axisOf({ side: 0, size: AXIS, ticks: { show: false }, splits: () => latest.current.times.map((each) => each.time), values: () => [] }),
        axisOf({ size: 0, ticks: { show: false }, splits: () => [...rows.keys(), rows.length], values: () => [] }),
      ],
      series: [{}, { show: false }],
      hooks: {
        ready: [measure],
        setSize: [measure],
        draw: [onDraw],
        setCursor: [(/** @type {any} */ { cursor: { left, top } }) => { overNow.value = left < 0 ? null : { x: left, row: Math.floor(top / ROW) }; }],
        setSelect: [(/** @type {any} */ self) => takeMarked(self, ({ start, end }) => chooseWindow(between(step, start, end)))],
      },
    };
    return { options, data: [[part.start, part.end], [null, null]] };
  }, [rows]); // and not whenever the answers of the step are those of another window
  useEffect(() => {
    plot.current?.setScale("x", { min: part.start, max: part.end });
    plot.current?.redraw(false, true); // with the lines of the present labels
  }, [data, picked, part.start, part.end, wide]);
  useEffect(() => {
    const wheel = (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const part = partOf(step);
      const time = part.start + ((part.end - part.start) * plot.current.cursor.left) / plot.current.over.clientWidth;
      chooseWindow(zoomed(step, part, time, Math.exp(event.deltaY / 300)));
    };
    element.current?.addEventListener("wheel", wheel, { passive: false });
    return () => element.current?.removeEventListener("wheel", wheel);
  }, [rows]);
  const width = plot.current?.over.clientWidth ?? 1;
  const nsOfPixel = (part.end - part.start) / width;
  const hoveredNow = () => overNow.value && data && sliceAt(step, data, rows[overNow.value.row]?.at, part.start + overNow.value.x * nsOfPixel, nsOfPixel);
  const foundNow = () => hoveredNow() ?? (pickedNow.value && data && sliceOf(step, data, pickedNow.value.at));
  const [hovered, found] = [hoveredNow(), foundNow()];
  const show = (/** @type {import("./lane_data.js").Slice | null} */ slice) => slice && chooseWindow(around(step, slice.start, slice.start + slice.length));
  /** Picks the lane above or below, or the slice before or after. @param {number} down @param {number} on */
  const pick = (down, on) => {
    if (!data) return;
    const [picked, part] = [pickedNow.value, partOf(step)];
    const isEmpty = (/** @type {{at: number}} */ lane) => data.first[lane.at] === data.first[lane.at + 1];
    let row = picked ? picked.row + down : rows.findIndex((lane) => !isEmpty(lane));
    while (down && rows[row] && isEmpty(rows[row])) row += down;
    if (!rows[row]) return;
    const wanted = picked && !down ? picked.at + on : firstFrom(data, rows[row].at, picked ? data.slices.start[picked.at] : part.start);
    const at = Math.max(data.first[rows[row].at], Math.min(wanted, data.first[rows[row].at + 1] - 1));
    const { start, length } = sliceOf(step, data, at);
    overNow.value = null;
    pickedNow.value = { row, at };
    if (start + length <= part.start || start >= part.end) chooseWindow(moved(step, part, start + (length - part.start - part.end) / 2));
  };
  const move = (/** @type {number} */ share) => {
    const part = partOf(step);
    chooseWindow(moved(step, part, (part.end - part.start) * share));
  };
  const zoom = (/** @type {number} */ factor) => {
    const part = partOf(step);
    chooseWindow(zoomed(step, part, (part.start + part.end) / 2, factor));
  };
  const keys = {
    ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Home: () => chooseWindow(null),
    Enter: () => show(foundNow()),
    ArrowUp: () => pick(-1, 0), ArrowDown: () => pick(pickedNow.value ? 1 : 0, 0), n: () => pick(0, 1), p: () => pick(0, -1),
  };
  return html`
    <div class="lanes">
      <ul class="lane-names" style=${{ paddingTop: `${AXIS}px` }}>${rows.map((lane) => html`
        <li style=${{ height: `${ROW}px` }} title=${titleOf(step, lane)}>${inParts(lane).map((text) => html`<span>${printable(text)}</span>`)}</li>`)}</ul>
      <div class="drawn">
        <div class="axis" aria-hidden="true">${times.filter((each) => each.text).map(({ time, text }) => html`
          <span style=${{ left: `${(100 * (time - part.start)) / (part.end - part.start)}%` }}>${text}</span>`)}</div>
        <div ref=${element} tabindex="0" role="img" onKeyDown=${onKeys(keys)} onClick=${() => show(hoveredNow())}
          aria-label=${`${rows.length} lanes from ${endTexts(part).join(" to ")}. ${KEYS}`}></div>
        ${hovered && over && !plot.current?.select.width && html`
          <div class="hovered" aria-hidden="true" style=${{ left: `${Math.min(over.x, width - 260)}px`, top: `${AXIS + (over.row + 1) * ROW + 4}px` }}>
            <strong class="name">${printable(hovered.name)}</strong><br />${bothTexts(hovered.length)}<br />from ${bothTexts(hovered.start)}</div>`}
      </div>
    </div>
    <p class="under-lanes" role="status">${found
      ? html`<strong class="name">${printable(found.name)}</strong> on ${printable(rows[hovered && over ? over.row : picked?.row ?? 0].name)}: ${bothTexts(found.length)}, from ${bothTexts(found.start)} on`
      : why ? printable(`The lanes cannot be shown: ${why}`)
      : !data ? "Loading the lanes …"
      : hint ? html`Drag to choose a window, Ctrl and wheel to zoom, click a slice to see it close, double click for the whole step.${
        Object.keys(step.loss_times).length > 0 && " A dashed line with a triangle marks the time of a loss."}` : ""}</p>`;
}
