// GPU time by annotation, as an icicle and as a table.
import { html } from "htm/preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { printable, shown } from "../numbers.js";
import { chosenWindow, choose } from "../state.js";
import { AnswerTable } from "../table.js";

/** @param {import("../views.js").Shown} props */
export function Icicle({ step }) {
  const answer = step.answers.ops;
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
    const tree = treeOf(answer);
    const chart = flamegraph()
      .width(width)
      .cellHeight(20)
      .inverted(true)
      .transitionDuration(0)
      .sort(false)
      .selfValue(true)
      .tooltip(false)
      .setColorHue("blue")
      .title("")
      .label((/** @type {any} */ node) => `${node.data.name}: ${node.data.text}`)
      .onClick((/** @type {any} */ node) => choose({ q: node.depth ? `^${escaped(node.data.path)}(/|$)` : "" }));
    select(element).datum(tree).call(chart);
    return () => chart.destroy();
  }, [answer, width]);
  return html`
    <h2>Ops</h2>
    <div class="icicle" ref=${place} role="img" aria-label="Icicle of GPU time by annotation; the table below has the same figures."></div>
    <${AnswerTable} answer=${answer} part=${chosenWindow.value} />`;
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** The paths as a tree, with the time right under each. @param {import("../provider.js").Answer} answer */
function treeOf(answer) {
  const column = (/** @type {string} */ name) => answer.values[answer.columns.findIndex((each) => each.name === name)];
  const [paths, own, total] = [column("path"), column("self_ns"), column("total_ns")];
  const root = { name: "all", path: "", value: 0, text: "", children: /** @type {any[]} */ ([]) };
  const nodes = new Map([["", root]]);
  paths.forEach((path, row) => {
    const whole = String(path);
    const around = whole.includes("/") && nodes.has(whole.slice(0, whole.lastIndexOf("/"))) ? whole.slice(0, whole.lastIndexOf("/")) : "";
    const node = {
      name: printable(whole.slice(around ? around.length + 1 : 0)),
      path: whole,
      value: Number(own[row]),
      text: shown(total[row], "ns"),
      children: [],
    };
    nodes.set(whole, node);
    /** @type {any} */ (nodes.get(around)).children.push(node);
  });
  root.text = shown(answer.totals.self_ns, "ns");
  return root;
}
