// A chart of uPlot in the colours of the page, that the keyboard walks as well; what it shows stands in words below it.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { shown } from "./numbers.js";

/** @typedef {{name: string, values: number[], is: "length" | "busy" | "line"}} Series */
/** @typedef {{x: number[], series: Series[], unit: string, ticks?: string, label: string, at: (place: number) => any,
 *   range?: {start: number, end: number}, onPick?: (place: number) => void,
 *   onWindow?: (part: {start: number, end: number}) => void}} Shown `x`: ascending; `unit`: of the values, `ticks`: of `x`. */

const HEIGHT = 170;
const AXIS = 78;

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {Series} series @param {number} number */
function drawn({ name, is }, number) {
  if (is === "line") {
    return {
      label: name, stroke: colour("--chart"), width: 2, dash: number ? [2 + 4 * number, 4] : [],
      paths: /** @type {any} */ (uPlot.paths).stepped({ align: 1 }), points: { show: false },
    };
  }
  const bars = /** @type {any} */ (uPlot.paths).bars({ size: [0.85, 60], align: 0 });
  const fill = colour(is === "busy" ? "--chart" : "--pico-muted-border-color");
  return { label: name, fill, stroke: is === "busy" ? fill : colour("--pico-muted-color"), width: 1, paths: bars, points: { show: false } };
}

/** @param {Shown} props */
export function Chart({ x, series, unit, ticks = "", label, at, range, onPick, onWindow }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const [chosen, choose] = useState(/** @type {number | null} */ (null));
  const [theme, setTheme] = useState(0);
  const latest = useRef({ onPick, onWindow });
  latest.current = { onPick, onWindow };
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setTheme((before) => before + 1);
    dark.addEventListener("change", change);
    const ink = colour("--pico-color");
    const line = { stroke: colour("--pico-muted-border-color"), width: 1 };
    const axis = (/** @type {string} */ of, /** @type {number} */ size) => ({
      stroke: ink, grid: line, ticks: line, size, font: "12px system-ui, sans-serif",
      values: (/** @type {any} */ _, /** @type {number[]} */ values) => values.map((each) => (of ? shown(each, of) : String(each))),
    });
    const edge = series[0].is === "line" ? 0 : 0.6;
    const made = new uPlot(/** @type {any} */ ({
      width: Math.max(element.clientWidth, 200),
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: Boolean(latest.current.onWindow), y: false, setScale: false }, points: { show: false } },
      scales: {
        x: { time: false, range: range ? [range.start, range.end] : [x[0] - edge, x[x.length - 1] + edge] },
        y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, (most || 1) * 1.05] },
      },
      axes: [{ ...axis(ticks, 34), incrs: ticks ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] }, axis(unit, AXIS)],
      series: [{}, ...series.map(drawn)],
      hooks: {
        setCursor: [(/** @type {any} */ self) => choose(self.cursor.idx ?? null)],
        setSelect: [(/** @type {any} */ self) => {
          const { left, width } = self.select;
          if (width > 3) latest.current.onWindow?.({ start: self.posToVal(left, "x"), end: self.posToVal(left + width, "x") });
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }), /** @type {any} */ ([x, ...series.map((each) => each.values)]), element);
    chart.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(element.clientWidth, 200), height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", change);
      made.destroy();
    };
  }, [x, series, theme, range?.start, range?.end]);
  const walk = (/** @type {number} */ to) => {
    const next = Math.max(0, Math.min(to, x.length - 1));
    const left = chart.current.valToPos(x[next], "x");
    chart.current.setCursor({ left: Math.max(0, left), top: HEIGHT / 3 }, false);
    choose(next);
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const moves = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: () => walk((chosen ?? 1) - 1),
      ArrowRight: () => walk((chosen ?? -1) + 1),
      Home: () => walk(0),
      End: () => walk(x.length - 1),
      Enter: () => { if (chosen !== null) onPick?.(chosen); },
    });
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  };
  return html`
    <div class=${onPick ? "chart picked-by-click" : "chart"} ref=${place} tabindex="0" role="img"
      aria-label=${`${label} Left and right walk${onPick ? ", Enter opens" : ""}; the table has the figures.`}
      onKeyDown=${onKey} onClick=${() => { if (chosen !== null) onPick?.(chosen); }}></div>
    <p class="under-lanes" role="status">${chosen !== null && chosen < x.length ? at(chosen) : ""}</p>`;
}
