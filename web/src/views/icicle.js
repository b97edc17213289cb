// GPU time by annotation, as an icicle and as a table.
import { html } from "htm/preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { shown } from "../numbers.js";
import { restOfTree, rowTree } from "../row_tree.js";
import { chosenWindow, choose } from "../state.js";
import { AnswerTable } from "../table.js";

/** @param {import("../views.js").Shown} props */
export function Icicle({ step }) {
  const answer = step.answers.ops;
  const rest = restOfTree(answer, "total_ns", "annotations");
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(0);
  // Before the view is painted, so that it does not jump when the chart comes.
  useLayoutEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    setWidth(element.clientWidth);
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!width) return;
    const element = /** @type {HTMLElement} */ (place.current);
    const text = shown(answer.totals.self_ns, "ns");
    const tree = { name: "all", path: "", value: Number(answer.totals.self_ns), text, children: rowTree(answer, "total_ns", "annotations") };
    const chart = flamegraph()
      .width(width)
      .cellHeight(20)
      .inverted(true)
      .transitionDuration(0)
      .sort(false)
      .selfValue(false)
      .tooltip(false)
      .setColorHue("blue")
      .title("")
      .label((/** @type {any} */ node) => `${node.data.name}: ${node.data.text}`)
      .onClick((/** @type {any} */ node) => choose({ q: node.data.path ? `^${escaped(node.data.path)}(/|$)` : "" }));
    select(element).datum(tree).call(chart);
    return () => chart.destroy();
  }, [answer, width]);
  return html`
    <h2>Ops</h2>
    ${rest && html`<p class="note">${rest}</p>`}
    <div class="icicle" ref=${place} role="img" aria-label="Icicle of GPU time by annotation; the table below has the same figures."></div>
    <${AnswerTable} answer=${step.listed.ops} part=${chosenWindow.value} />`;
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
