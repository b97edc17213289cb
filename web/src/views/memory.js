// Memory over time, and the tables about it.
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import { Chart } from "../chart.js";
import { exact, printable, shown, timeText } from "../numbers.js";
import { chosenWindow, chooseWindow } from "../state.js";

/** @typedef {{name: string, times: number[], held: number[]}} Curve */

/** @param {{step: import("../provider.js").Step}} props */
export function MemoryCurves({ step }) {
  return html`${step.memory.filter((each) => each.times.length > 0).map((each) => html`<${MemoryCurve} key=${each.name} curve=${each} step=${step} />`)}`;
}

/** @param {{curve: Curve, step: import("../provider.js").Step}} props */
function MemoryCurve({ curve, step }) {
  const x = useMemo(() => [0, ...curve.times, step.length_ns], [curve]);
  const series = useMemo(() => {
    const held = [0, ...curve.held, curve.held[curve.held.length - 1]];
    return [{ name: "held", values: held, is: /** @type {const} */ ("line") }];
  }, [curve]);
  const part = chosenWindow.value ?? { start: 0, end: step.length_ns };
  return html`
    <h2>${printable(curve.name)} memory over time</h2>
    <p class="definition">Memory that was allocated in the step and held; drag to choose a window.</p>
    <${Chart} x=${x} series=${series} unit="bytes" ticks="ns" range=${part} label="Memory held over time." onWindow=${chooseWindow}
      at=${(/** @type {number} */ place) => html`<strong>${shown(series[0].values[place], "bytes")}</strong> (${exact(series[0].values[place], "bytes")}) from ${timeText(x[place])} on`} />`;
}
