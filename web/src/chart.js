// A chart of uPlot in the colours of the page, that the keyboard walks as well; what it shows stands in words below it.
import { html } from "htm/preact";
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import uPlot from "uplot";
import { shown } from "./numbers.js";
import { axisOf, colour, onKeys, takeMarked, usePlot } from "./plot.js";
import { timeTexts } from "./ticks.js";

/** @typedef {{name: string, values: number[], is: "length" | "busy" | "line"}} Series */
/** @typedef {{x: number[], series: Series[], unit: string, ticks?: string, label: string, at: (place: number) => any,
 *   ids?: string[], range?: {start: number, end: number}, onPick?: (place: number) => void,
 *   onWindow?: (part: {start: number, end: number}) => void}} Shown `x`: ascending; `unit`: of the values, `ticks`: of `x`;
 *   `ids`: of what stands at each place, where others come between them. */

const HEIGHT = 170;
const AXIS = 78;

/** @param {Series} series @param {number} number */
function drawn({ name, is }, number) {
  if (is === "line") {
    return {
      label: name, stroke: () => colour("--chart"), width: 2, dash: number ? [2 + 4 * number, 4] : [],
      paths: /** @type {any} */ (uPlot.paths).stepped({ align: 1 }), points: { show: false },
    };
  }
  const bars = /** @type {any} */ (uPlot.paths).bars({ size: [0.85, 60], align: 0 });
  const fill = () => colour(is === "busy" ? "--chart" : "--pico-muted-border-color");
  return { label: name, fill, stroke: is === "busy" ? fill : () => colour("--pico-muted-color"), width: 1, paths: bars, points: { show: false } };
}

/** @param {Shown} props */
export function Chart({ x, series, unit, ticks = "", label, at, ids, range, onPick, onWindow }) {
  const chosen = useSignal(/** @type {number | null} */ (null));
  const known = useRef(ids);
  if (known.current !== ids) {
    const id = known.current?.[chosen.value ?? -1];
    const place = id === undefined ? -1 : ids?.indexOf(id) ?? -1;
    chosen.value = place < 0 ? null : place;
    known.current = ids;
  }
  const latest = useRef({ onPick, onWindow });
  latest.current = { onPick, onWindow };
  const [place, chart] = usePlot(() => {
    const text = (/** @type {string} */ of) => (/** @type {any} */ _, /** @type {number[]} */ values) => values.map((each) => (of ? shown(each, of) : String(each)));
    const edge = series[0].is === "line" ? 0 : 0.6;
    const options = {
      height: HEIGHT,
      cursor: { drag: { x: Boolean(latest.current.onWindow), y: false, setScale: false }, points: { show: false } },
      scales: {
        x: { time: false, range: range ? [range.start, range.end] : [x[0] - edge, x[x.length - 1] + edge] },
        y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, (most || 1) * 1.05] },
      },
      axes: [
        axisOf({ size: 34, values: ticks === "ns" ? (/** @type {any} */ _, /** @type {number[]} */ times) => timeTexts(times) : text(ticks), incrs: ticks ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] }),
        axisOf({ size: AXIS, values: text(unit) }),
      ],
      series: [{}, ...series.map(drawn)],
      hooks: {
        setCursor: [(/** @type {any} */ self) => { if (self.cursor.event) chosen.value = self.cursor.idx ?? null; }], // not when it is made
        setSelect: [(/** @type {any} */ self) => takeMarked(self, (part) => latest.current.onWindow?.(part))],
      },
    };
    return { options, data: [x, ...series.map((each) => each.values)] };
  }, [x, series, range?.start, range?.end]);
  const walk = (/** @type {number} */ to) => {
    const next = Math.max(0, Math.min(to, x.length - 1));
    const left = chart.current.valToPos(x[next], "x");
    chart.current.setCursor({ left: Math.max(0, left), top: HEIGHT / 3 }, false);
    chosen.value = next;
  };
  const pick = () => { if (chosen.value !== null) onPick?.(chosen.value); };
  const keys = {
    ArrowLeft: () => walk((chosen.value ?? 1) - 1),
    ArrowRight: () => walk((chosen.value ?? -1) + 1),
    Home: () => walk(0),
    End: () => walk(x.length - 1),
    Enter: pick,
  };
  return html`
    <div class=${onPick ? "chart picked-by-click" : "chart"} ref=${place} tabindex="0" role="img"
      aria-label=${`${label} Left and right walk${onPick ? ", Enter opens" : ""}; the table has the figures.`}
      onKeyDown=${onKeys(keys)} onClick=${pick}></div>
    <p class="under-lanes" role="status">${chosen.value !== null && chosen.value < x.length ? at(chosen.value) : ""}</p>`;
}
