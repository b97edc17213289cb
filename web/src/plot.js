// A chart of uPlot in an element: its colours are the page's, its width is that of the element, and keys act on it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

/** Pixels that a chart has at least: its element has none while it is not shown. */
const LEAST_WIDTH = 40;
/** Pixels of a sheet of paper between its margins, the same on A4 and Letter. */
const PAPER_WIDTH = 700;
/** Pixels that a mouse moves while it is clicked. */
const STILL = 3;

/** @param {string} name of a property of the page's style */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** An axis in the colours of the page. @param {Record<string, any>} others */
export function axisOf(others) {
  const line = { stroke: () => colour("--pico-muted-border-color"), width: 1 };
  return { stroke: () => colour("--pico-color"), grid: line, ticks: line, font: "12px system-ui, sans-serif", ...others };
}

/** Makes a chart, and makes it again when the colours of the page or what it depends on change.
 * @param {() => {options: Record<string, any>, data: any}} made options without a width @param {any[]} on
 * @returns {[import("preact").RefObject<HTMLElement | null>, import("preact").RefObject<any>]} where it goes, and the chart */
export function usePlot(made, on) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    const width = () => Math.max(element.clientWidth, LEAST_WIDTH);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setTheme((before) => before + 1);
    dark.addEventListener("change", change);
    const { options, data } = made();
    options.cursor.drag.click = onlyClicks(element);
    plot.current = new uPlot(/** @type {any} */ ({ width: width(), legend: { show: false }, ...options }), data, element);
    if (options.cursor.drag.x) markByTouch(plot.current);
    const watch = new ResizeObserver(unlessMarking(plot.current.over, () => plot.current?.setSize({ width: width(), height: options.height })));
    watch.observe(element);
    const drawAs = (/** @type {number} */ wide) => {
      plot.current.setSize({ width: wide, height: options.height });
      queueMicrotask(() => plot.current?.redraw()); // once the size is that: the colours are others, also where the size is not
    };
    const print = () => { // as wide as the paper, and in the colours of the light theme, which is the one of paper
      document.documentElement.dataset.theme = "light";
      const left = element.getBoundingClientRect().left - document.body.getBoundingClientRect().left;
      drawAs(Math.min(width(), PAPER_WIDTH - left));
    };
    const printed = () => {
      delete document.documentElement.dataset.theme;
      drawAs(width());
    };
    addEventListener("beforeprint", print);
    addEventListener("afterprint", printed);
    return () => {
      removeEventListener("beforeprint", print);
      removeEventListener("afterprint", printed);
      watch.disconnect();
      dark.removeEventListener("change", change);
      plot.current.destroy();
      plot.current = null;
    };
  }, [...on, theme]);
  return [place, plot];
}

/** Keeps clicks at the end of a move from a chart; uPlot also takes a hand that is not quite still for a move.
 * @param {HTMLElement} element of the chart */
function onlyClicks(element) {
  /** @type {MouseEvent | null} */
  let begun = null;
  element.onmousedown = (event) => { begun = event; };
  return (/** @type {any} */ _, /** @type {MouseEvent} */ event) => {
    if (begun && Math.hypot(event.clientX - begun.clientX, event.clientY - begun.clientY) <= STILL) return;
    event.stopPropagation();
  };
}

/** Calls a function, but while a part of a chart is being marked only once that is done: a mark is in pixels, which would
 * be those of other times in a chart of another width.
 * @param {HTMLElement} over what is dragged on @param {() => void} then @returns {() => void} */
function unlessMarking(over, then) {
  let isMarking = false;
  let isDue = false;
  const done = () => {
    isMarking = false;
    if (isDue) then();
    isDue = false;
  };
  over.addEventListener("pointerdown", ({ pointerType }) => {
    isMarking = true;
    // the mark of a mouse is taken when its button is up, which browsers tell after the pointer's own event
    for (const event of pointerType === "mouse" ? ["mouseup"] : ["pointerup", "pointercancel"]) addEventListener(event, done, { once: true });
  });
  return () => {
    isDue = isMarking;
    if (!isMarking) then();
  };
}

/** Lets a finger mark a part of a chart as a mouse does, which is all that uPlot listens to; moving up and down scrolls the page.
 * @param {any} plot */
function markByTouch(plot) {
  const { over } = plot;
  /** @type {{id: number, left: number} | null} */
  let begun = null;
  over.style.touchAction = "pan-y";
  const leftOf = (/** @type {PointerEvent} */ event) => Math.max(0, Math.min(event.clientX - over.getBoundingClientRect().left, over.clientWidth));
  const mark = (/** @type {PointerEvent} */ event, /** @type {boolean} */ isDone) => {
    if (begun?.id !== event.pointerId) return;
    const [left, right] = [begun.left, leftOf(event)].sort((one, other) => one - other);
    plot.setSelect({ left, top: 0, width: right - left, height: over.clientHeight }, isDone);
    if (isDone) begun = null;
  };
  over.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    if (event.pointerType === "touch" && event.isPrimary) begun = { id: event.pointerId, left: leftOf(event) };
  });
  over.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => mark(event, false));
  over.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => mark(event, true));
  over.addEventListener("pointercancel", () => {
    begun = null;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  });
}

/** Takes the part of a chart that was marked by dragging, which is marked no longer.
 * @param {any} plot @param {(part: {start: number, end: number}) => void} then called unless hardly anything was marked */
export function takeMarked(plot, then) {
  const { left, width } = plot.select;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (width > STILL) then({ start: plot.posToVal(left, "x"), end: plot.posToVal(left + width, "x") });
}

/** Listens to keys that have a meaning, pressed alone. @param {Record<string, () => void>} meanings */
export function onKeys(meanings) {
  return (/** @type {KeyboardEvent} */ event) => {
    if (!meanings[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    meanings[event.key]();
  };
}
