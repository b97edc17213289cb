// tfprof's views with every option: scope, graph, op and code of a step or of a profile. The address holds the question.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { printable } from "../numbers.js";
import { restOfTree, rowTree } from "../row_tree.js";
import { ask, withOptions } from "../server.js";
import { state, turnTo } from "../state.js";
import { AnswerTable, heading } from "../table.js";

/** @typedef {import("../provider.js").Answer} Answer */
/** @typedef {Record<string, string>} Options */
/** @typedef {{views: string[], options: [string, string][], defaults: Options, attributes: string[], orders: string[],
 *   presets: [string, string, Options][]}} Choices */
/** @typedef {Answer & {text: string, measure: string}} ProfileAnswer */

/** What is asked at first: the options of profiler-ui, and the scope view, which every profile has. */
const FIRST = { view: "scope", select: "micros", order_by: "micros", max_depth: "10000", account_displayed_op_only: "true" };
const NUMBERS = /^(max_depth|step|min_.*)$/;

/** @returns {Options} */
function question() {
  try {
    const found = JSON.parse(state.value.prof || "{}");
    return { ...FIRST, ...Object.fromEntries(Object.entries(found).map(([key, value]) => [key, String(value)])) };
  } catch {
    return { ...FIRST };
  }
}

/** @param {{run: import("../server.js").Run, failures: number}} props `failures`: how often the server did not answer for a while */
export function Profile({ run, failures }) {
  const [choices, setChoices] = useState(/** @type {Choices | null} */ (null));
  const [found, setFound] = useState(/** @type {{path: string, view: string, answer: ProfileAnswer} | null} */ (null));
  const [why, setWhy] = useState("");
  const asked = question();
  const path = withOptions(`/api/runs/${run.id}/profile`, asked);
  useEffect(() => { ask("/api/profile_choices").then(setChoices, (error) => setWhy(error.message)); }, [failures]);
  useEffect(() => {
    let is = true;
    setWhy("");
    ask(path).then((answer) => is && setFound({ path, view: asked.view, answer }), (error) => { if (is) { setFound(null); setWhy(error.message); } });
    return () => { is = false; };
  }, [path, run.version, failures]);
  const answer = found?.answer;
  if (!choices) return html`<p class="state" role=${why ? "alert" : "status"}>${why ? printable(why) : "Loading …"}</p>`;
  return html`
    <${Question} choices=${choices} asked=${asked} />
    ${why && html`<p class="state" role="alert">${printable(why)}</p>`}
    ${found?.path !== path && !why && html`<p class="state" role="status">Loading …</p>`}
    ${answer && html`
      ${answer.measure && found.view !== "op" && html`<p class="definition">The widths are ${heading(answer.measure)}. ${restOfTree(answer, answer.measure, "nodes")}</p><${Icicle} answer=${answer} />`}
      <${AnswerTable} answer=${answer} title=${`The ${found.view} view`} />
      <details class="same"><summary>as collector prof prints it</summary><pre>${printable(answer.text).replaceAll("\\n", "\n")}</pre></details>`}`;
}

/** @param {Options} asked */
function put(asked) {
  turnTo({ prof: JSON.stringify(asked), q: "", sort: "" });
}

/** The place of the preset that is asked for; -1: none of them. @param {Choices} choices @param {Options} asked */
function presetAt(choices, asked) {
  return choices.presets.findIndex(([, view, options]) => {
    /** @type {Options} */
    const preset = { ...FIRST, ...options, view };
    return [...new Set([...Object.keys(preset), ...Object.keys(asked)])].every((name) =>
      (preset[name] ?? choices.defaults[name]) === (asked[name] ?? choices.defaults[name]));
  });
}

/** @param {{choices: Choices, asked: Options}} props */
function Question({ choices, asked }) {
  const [draft, setDraft] = useState(asked);
  useEffect(() => setDraft(asked), [state.value.prof]); // of the same form: what was pressed keeps the focus
  const set = (/** @type {string} */ name, /** @type {string} */ value) => setDraft((before) => ({ ...before, [name]: value }));
  const valueOf = (/** @type {string} */ name) => draft[name] ?? choices.defaults[name] ?? "";
  const chosen = new Set(valueOf("select").split(",").filter(Boolean));
  const toggle = (/** @type {string} */ name) => {
    if (!chosen.delete(name)) chosen.add(name);
    set("select", [...chosen].join(","));
  };
  const field = ([name, help] = ["", ""]) => html`
    <label title=${help}>${name.replaceAll("_", " ")}
      <input type=${NUMBERS.test(name) ? "number" : "text"} name=${name} value=${valueOf(name)}
        onInput=${(/** @type {any} */ event) => set(name, event.target.value)} /></label>`;
  const options = (/** @type {RegExp} */ which) => choices.options.filter(([name]) => which.test(name)).map((each) => field(each));
  return html`
    <form class="question" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); put(draft); }}>
      <div class="choice"><span>view</span>${choices.views.map((view) => html`
        <button type="button" class="quiet" aria-pressed=${view === asked.view} onClick=${() => put({ ...draft, view })}>${view}</button>`)}
        <label>preset <select value=${String(presetAt(choices, asked))} onChange=${(/** @type {any} */ event) => {
          const preset = choices.presets[Number(event.target.value)];
          if (preset) put({ ...preset[2], view: preset[1] });
        }}><option value="-1">…</option>${choices.presets.map(([name], at) => html`
          <option value=${String(at)} selected=${at === presetAt(choices, asked)}>${name}</option>`)}</select></label>
        <button type="button" class="quiet" onClick=${() => { setDraft(FIRST); turnTo({ prof: "", q: "", sort: "" }); }}>reset</button></div>
      <fieldset><legend>select</legend>${choices.attributes.map((name) => html`
        <label><input type="checkbox" checked=${chosen.has(name)} onChange=${() => toggle(name)} /> ${name.replaceAll("_", " ")}</label>`)}</fieldset>
      <div class="fields">
        <label>order by <select value=${valueOf("order_by")} onChange=${(/** @type {any} */ event) => set("order_by", event.target.value)}>
          ${choices.orders.map((name) => html`<option value=${name} selected=${name === valueOf("order_by")}>${name.replaceAll("_", " ")}</option>`)}</select></label>
        ${options(/^(max_depth|step)$/)}
        <label title="totals of displayed nodes only"><input type="checkbox" checked=${valueOf("account_displayed_op_only") === "true"}
          onChange=${(/** @type {any} */ event) => set("account_displayed_op_only", String(event.target.checked))} /> account displayed only</label>
      </div>
      <details><summary>minimums</summary><div class="fields">${options(/^min_/)}</div></details>
      <details><summary>types and names</summary><div class="fields">${options(/_regexes$/)}</div></details>
      <button type="submit" class="ask">Profile</button>
    </form>`;
}

/** The tree by its first measure: what a node has for itself is the rest that its children leave. @param {{answer: ProfileAnswer}} props */
function Icicle({ answer }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    const [tree] = rowTree(answer, answer.measure, "nodes");
    if (!tree) return;
    const chart = flamegraph().width(Math.max(element.clientWidth, 300)).cellHeight(20).inverted(true).transitionDuration(0)
      .sort(false).selfValue(false).tooltip(false).setColorHue("blue").title("")
      .label((/** @type {any} */ node) => `${node.data.name}: ${node.data.text}`);
    select(element).datum(tree).call(chart);
    return () => { chart.destroy(); element.replaceChildren(); };
  }, [answer]);
  return html`<div class="icicle" ref=${place} role="img" aria-label="Icicle of the tree; the table below has the same figures."></div>`;
}
