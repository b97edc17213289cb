// An answer as a table: sorted, searched, grouped, with the columns that were chosen. Figures are the answer's own.
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { createTable, getCoreRowModel, getExpandedRowModel, getFilteredRowModel, getGroupedRowModel, getSortedRowModel } from "@tanstack/table-core";
import { choose, state } from "./state.js";
import { exact, grouped, printable, shown } from "./numbers.js";
import { pattern } from "./pattern.js";
import { orderOf } from "./row_order.js";
import { aboutWindow, within } from "./window.js";

/** @typedef {import("./provider.js").Answer} Answer */
/** @typedef {import("./numbers.js").Value} Value */

const FIRST_ROWS = 200;
const LEAST_ROWS = 8;
const MANY_COLUMNS = 9;
/** Characters of a name that stay on one line. */
const LEAST_NAME = 24;
/** Room for so many characters in a column that has longer names. */
const LEAST_WIDTH = "min(15em, 50vw)";
/** What stands before a verdict, so that it is not told by its colour alone. @type {Record<string, string>} */
const SIGNS = { slower: "▲", faster: "▼", new: "+", gone: "−", outlier: "◆" };
const NOT_COPIED = "the browser does not let this page copy";
/** Says that no column is hidden. */
const NONE = "-";

/** @param {string} name The name of a column whose values say their unit, unless that tells it from others.
 * @param {{name: string}[]} others */
export function heading(name, others = []) {
  const stem = name.replace(/_ns$/, "");
  const isTold = stem === name || !others.some((other) => [stem, `${stem}_bytes`].includes(other.name));
  return `${stem.replace(/^num_/, "").replaceAll("_", " ")}${isTold ? "" : " time"}`;
}

/** The title of an answer. @param {string} question */
export function titled(question) {
  const text = heading(question);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Columns that are not shown: those that were chosen, else those in which nothing stands, and of many those of figures
 * that are 0 in every row.
 * @param {Answer} answer @param {string} chosen */
function hiddenColumns(answer, chosen) {
  if (chosen) return new Set(chosen.split(","));
  const isNothing = (/** @type {any} */ column, /** @type {Value} */ value) => value === null || value === "" ||
    (value === 0 && answer.columns.length >= MANY_COLUMNS && column.unit !== "number");
  return new Set(answer.columns.filter((column, place) =>
    answer.values[place].length > 0 && answer.values[place].every((value) => isNothing(column, value))).map((each) => each.name));
}

/** @typedef {{row: number} | {group: string, text: string, count: number, shut: boolean}} Line */

/** The rows that are left after search, in order, as lines of a table with those of groups; and the columns that are shown.
 * @param {Answer} answer @param {{q: string, sort: string, group: string, shut: string, cols: string}} chosen
 * @param {Set<number> | null} kept */
function useRows(answer, chosen, kept) {
  const table = useMemo(() => {
    const rows = Array.from({ length: answer.values[0]?.length ?? 0 }, (_, row) => row);
    /** @type {import("@tanstack/table-core").Table<number>} */
    const made = createTable({
      data: rows,
      columns: answer.columns.map((column, place) => ({
        id: column.name,
        accessorFn: (/** @type {number} */ row) => answer.values[place][row],
        sortUndefined: false, // no value is: the table need not look
        sortDescFirst: column.unit !== "text",
        sortingFn: orderOf(answer.values[place], column.unit, () => made.getState().sorting[0]?.desc),
      })),
      getCoreRowModel: getCoreRowModel(),
      getFilteredRowModel: getFilteredRowModel(),
      getGroupedRowModel: getGroupedRowModel(),
      getExpandedRowModel: getExpandedRowModel(),
      getSortedRowModel: getSortedRowModel(),
      globalFilterFn: (row, _, found) => found(row.original),
      getColumnCanGlobalFilter: () => true,
      autoResetAll: false,
      groupedColumnMode: false,
      onStateChange: () => {},
      renderFallbackValue: null,
      state: {},
    });
    return made;
  }, [answer]);
  const [by, order] = chosen.sort.split(".");
  const sorting = answer.columns.some((each) => each.name === by) ? [{ id: by, desc: order !== "asc" }] : [];
  const group = answer.columns.find((each) => each.name === chosen.group);
  const expression = pattern(chosen.q);
  const texts = answer.columns.flatMap((each, place) => (each.unit === "text" ? [place] : []));
  const search = useMemo(
    () => (/** @type {number} */ row) =>
      (!kept || kept.has(row)) &&
      (!chosen.q || !expression || texts.some((place) => expression.test(String(answer.values[place][row])))),
    [answer, chosen.q, kept],
  );
  const hidden = useMemo(() => hiddenColumns(answer, chosen.cols), [answer, chosen.cols]);
  table.setOptions((before) => ({
    ...before,
    state: {
      ...table.initialState,
      sorting,
      grouping: group ? [group.name] : [],
      expanded: true,
      globalFilter: chosen.q || kept ? search : undefined,
    },
  }));
  const found = table.getRowModel().rows;
  const shut = new Set(group ? shutGroups(chosen.shut) : []);
  let isShut = false;
  /** @type {(each: (typeof found)[0]) => Line[]} */
  const linesOf = (each) => {
    if (!group || !each.getIsGrouped()) return isShut ? [] : [{ row: each.original }];
    const value = String(each.groupingValue);
    isShut = shut.has(value);
    const name = shown(/** @type {Value} */ (each.groupingValue), group.unit) || "(none)";
    const text = group.unit === "text" ? name : `${heading(group.name)} ${name}`;
    return [{ group: value, text, count: each.subRows.length, shut: isShut }];
  };
  const lines = found.flatMap(linesOf);
  const columns = answer.columns.map((column, place) => ({ ...column, place })).filter((each) => !hidden.has(each.name));
  const rows = (group ? found.filter((each) => !each.getIsGrouped()) : found).map((each) => each.original);
  return { rows, lines, columns, sorting: sorting[0], hidden };
}

/** @param {string} text @returns {string[]} */
function shutGroups(text) {
  try {
    const found = JSON.parse(text || "[]");
    return Array.isArray(found) ? found.map(String) : [];
  } catch {
    return [];
  }
}

/** Shows or hides the rows of a group. @param {string} group */
function toggleGroup(group) {
  const shut = new Set(shutGroups(state.value.shut));
  if (!shut.delete(group)) shut.add(group);
  choose({ shut: shut.size ? JSON.stringify([...shut]) : "" });
}

/** A reference to the element around a table, in which each name is marked that has more lines than are shown: only those
 * need a button that shows the whole. */
function useCutNames() {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const mark = () => {
    const names = [...(place.current?.querySelectorAll(".named > .name, .named > * > .name") ?? [])];
    const areCut = names.map((name) => name.scrollHeight > name.clientHeight + 1); // all are measured before any is changed
    names.forEach((name, at) => name.closest(".named")?.classList.toggle("cut", areCut[at]));
  };
  useLayoutEffect(mark);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(mark);
    watch.observe(/** @type {HTMLElement} */ (place.current));
    return () => watch.disconnect();
  }, []);
  return place;
}

/** An answer with the rows of the largest figures alone. @param {Answer} answer that has them @returns {Answer} */
export function largestOf(answer) {
  return { ...answer, values: /** @type {Value[][]} */ (answer.largest) };
}

/** Words on which rows of an answer the page has. @param {Answer} answer */
function heldRows({ chosen_by: by, columns, rows, values }) {
  const held = grouped(values[0].length);
  return by ? `The file holds ${held} of ${grouped(rows)} rows: those with the largest ${heading(by, columns)}, and what is around them.`
    : `The file holds the first ${held} of ${grouped(rows)} rows.`;
}

/** The room that a column of names has at least, where some of them are longer than that; shorter ones are not broken.
 * @param {Value[]} values @param {{row: number}[]} lines that are shown */
function leastWidth(values, lines) {
  return lines.some((line) => String(values[line.row] ?? "").length > LEAST_NAME) ? LEAST_WIDTH : undefined;
}

const ALL_OF_IT = { q: "", sort: "", group: "", shut: "", cols: "", rows: "" };

/** One answer with all that can be done to it; `plain`: without search and choices; `least`: also without the rest of its rows.
 * @param {{answer: Answer, title?: string, kept?: Set<number> | null, note?: string, least?: boolean, plain?: boolean,
 *   isDefined?: boolean, onRow?: (row: number) => void, rowHelp?: string, part?: {start: number, end: number} | null, hrefs?: string[], ids?: string[]}} props
 * `hrefs`: of each row the address that its first cell leads to; "": none. `ids`: by which a row is the same one where there are
 * others before it. */
export function AnswerTable({ answer, title, kept = null, note = "", least = false, plain = least, isDefined = true, onRow, rowHelp, part = null, hrefs = [], ids = [] }) {
  const chosen = plain ? ALL_OF_IT : state.value;
  const { rows, lines, columns, sorting, hidden } = useRows(answer, chosen, kept);
  const most = least ? LEAST_ROWS : chosen.rows === "all" ? Infinity : FIRST_ROWS;
  const cut = lines.slice(0, most);
  const button = Math.max(0, columns.findIndex((column) => column.unit !== "number"));
  const depth = answer.columns.findIndex((column) => column.name === "depth");
  const bounds = ["low", "high"].map((name) => answer.columns.findIndex((column) => column.name === name));
  const boundsOf = (/** @type {number} */ row) => (bounds.includes(-1) ? undefined : bounds.map((at) => answer.values[at][row]));
  const isTree = depth >= 0 && answer.columns[0].name === "path" && !sorting && !chosen.q && !chosen.group && !least;
  const label = title ?? titled(answer.question);
  const place = useCutNames();
  const shownRows = /** @type {{row: number}[]} */ (cut.filter((line) => "row" in line));
  return html`
    <section class="answer" aria-label=${label}>
      ${title && html`<h2>${printable(title)}</h2>`}
      ${isDefined && answer.definition && html`<p class="definition">${answer.definition}</p>`}
      ${answer.notes?.map((each) => html`<p class="note">${printable(each)}</p>`)}
      ${[note, aboutWindow(answer, part, kept)].map((each) => each && html`<p class="note">${each}</p>`)}
      ${!plain && html`<${Tools} answer=${answer} rows=${rows} columns=${columns} hidden=${hidden} />`}
      <div class="scrolled" ref=${place} tabindex="0" role="region" aria-label=${`${label}: table`}>
        <table>
          <thead>
            <tr>${columns.map((column) => html`<${Head} column=${column} others=${answer.columns} sorting=${sorting} fixed=${plain}
              least=${column.unit === "text" && column.name !== "meaning" ? leastWidth(answer.values[column.place], shownRows) : undefined} />`)}</tr>
          </thead>
          <tbody>
            ${cut.map((line) => ("group" in line ? html`
              <tr key=${`group ${line.group}`} class="group"><th colspan=${columns.length} scope="rowgroup">
                <button class="quiet" aria-expanded=${!line.shut} onClick=${() => toggleGroup(line.group)}>
                  <span aria-hidden="true">${line.shut ? "▸" : "▾"}</span> <span class="name" title=${line.text}>${line.text}</span></button>
                <span class="count"> ${grouped(line.count)} ${line.count === 1 ? "row" : "rows"}</span></th></tr>` : html`
              <tr key=${ids[line.row] ?? line.row} data-id=${ids[line.row]} class=${onRow ? "chosen-by-click" : ""} title=${onRow ? rowHelp : undefined}
                onClick=${onRow && (() => onRow(line.row))}>
                ${columns.map((column, at) => html`<${Cell} value=${answer.values[column.place][line.row]} column=${column}
                  href=${at === 0 ? hrefs[line.row] : ""} act=${onRow && at === button ? () => onRow(line.row) : undefined} help=${rowHelp}
                  bounds=${column.name === "ratio" ? boundsOf(line.row) : undefined} tree=${isTree ? answer.values[depth][line.row] : null} />`)}
              </tr>`))}
          </tbody>
          ${!least && rows.length === answer.rows && Object.keys(answer.totals).length > 0 && html`
            <tfoot><tr>${columns.map((column, at) => html`
              <td class=${column.unit === "text" ? "" : "figure"}>${column.name in answer.totals
                ? html`<span title=${exact(answer.totals[column.name], column.unit)}>${shown(answer.totals[column.name], column.unit)}</span>`
                : at === 0 ? "all" : ""}</td>`)}</tr></tfoot>`}
        </table>
      </div>
      <p class="below">
        ${cut.length < lines.length && !least && html`
          <button class="quiet" onClick=${() => { choose({ rows: "all" }); place.current?.focus({ preventScroll: true }); }}>show all ${grouped(rows.length)} rows</button> `}
        ${answer.values[0]?.length < answer.rows && !least && html`
          <span>${heldRows(answer)}</span>`}
        ${least && shownRows.length < answer.rows && html`<span>${grouped(shownRows.length)} of ${grouped(answer.rows)} rows.</span>`}
        ${rows.length === 0 && html`<span>${
          chosen.q ? "No row fits the search." : kept || answer.part ? "Nothing of it lies in the chosen window." : "There is nothing of it in this step."}</span>`}
      </p>
      ${!least && answer.python && html`<${Same} answer=${answer} part=${part} />`}
    </section>`;
}

/** @param {{column: any, others: any[], sorting: any, fixed: boolean, least?: string}} props */
function Head({ column, others, sorting, fixed, least }) {
  const is = sorting?.id === column.name ? (sorting.desc ? "descending" : "ascending") : undefined;
  const figure = column.unit === "text" ? "" : "figure";
  const style = { minWidth: least };
  if (fixed) return html`<th scope="col" class=${figure} style=${style} title=${column.meaning}>${heading(column.name, others)}</th>`;
  // A click leads through these in turn, and back to the order of the answer.
  const turns = column.unit === "text" ? ["ascending", "descending"] : ["descending", "ascending"];
  const next = turns[is ? turns.indexOf(is) + 1 : 0];
  const sort = next ? `${column.name}.${next === "ascending" ? "asc" : "desc"}` : "";
  return html`
    <th scope="col" class=${figure} style=${style} aria-sort=${is}>
      <button class="heading" title=${column.meaning} onClick=${() => choose({ sort })}>
        ${heading(column.name, others)}<span aria-hidden="true">${is === "descending" ? " ▼" : is === "ascending" ? " ▲" : ""}</span>
      </button>
    </th>`;
}

/** A ratio and its interval around 1, on a scale from half to double. @param {{ratio: Value, bounds: Value[]}} props */
function Interval({ ratio, bounds }) {
  const place = (/** @type {Value} */ each) => 40 + 38 * Math.max(-1, Math.min(Math.log2(Number(each)), 1));
  const [low, high] = bounds.map((each) => place(each ?? ratio));
  return html`
    <svg class="interval" viewBox="0 0 80 12" aria-hidden="true">
      <line class="same" x1="40" x2="40" y1="0" y2="12" />
      <line x1=${low} x2=${Math.max(high, low + 1)} y1="6" y2="6" />
      <circle cx=${place(ratio)} cy="6" r="2.5" />
    </svg>`;
}

/** @param {{value: Value, column: any, act?: () => void, href?: string, help?: string, bounds?: Value[], tree: Value}} props */
function Cell({ value, column, act, href, help, bounds, tree }) {
  const text = shown(value, column.unit);
  const [whole, setWhole] = useState(false);
  const button = (/** @type {any} */ content) => html`
    <button class="row" title=${help} onClick=${(/** @type {Event} */ event) => { event.stopPropagation(); act?.(); }}>${content}</button>`;
  if (column.unit === "text") {
    // In the order of a tree each path stands below the one around it, so that its last part is enough.
    const isInside = tree && column.name === "path";
    const inner = whole ? text : isInside ? text.slice(text.lastIndexOf("/") + 1) : column.shortened?.(text) ?? text;
    const isAlways = whole || (column.shortened && inner !== text);
    const name = html`<span class=${`name ${whole ? "whole" : inner.length > LEAST_NAME ? "" : "short"} ${column.inWords ? "words" : ""}`} title=${text} style=${isInside ? { paddingLeft: `${1.1 * Number(tree)}rem` } : {}}>${inner}</span>`;
    const sign = column.name === "verdict" && SIGNS[text];
    return html`<td class=${column.name === "meaning" ? "prose" : sign ? `verdict-${text}` : ""}>${sign && html`
      <span class="sign" aria-hidden="true" data-sign=${sign}></span>`}<span class="named">${href ? html`<a href=${href}>${name}</a>` : act ? button(name) : name}${column.name !== "meaning" && html`
      <button class=${isAlways ? "quiet more always" : "quiet more"} aria-expanded=${whole} aria-label=${whole ? "shorten the name" : "the whole name"}
        onClick=${(/** @type {Event} */ event) => { event.stopPropagation(); setWhole(!whole); }}></button>`}</span></td>`;
  }
  const isShare = column.unit === "share";
  return html`
    <td class=${isShare ? "figure share" : "figure"} title=${exact(value, column.unit)}>
      ${isShare && value !== null && html`<span class="bar" aria-hidden="true"><span style=${{ width: `${100 * Math.min(Number(value), 1)}%` }}></span></span>`}
      ${bounds && value !== null && Number(value) > 0 && html`<${Interval} ratio=${value} bounds=${bounds} />`}
      ${act ? button(text) : text}
    </td>`;
}

/** @param {{answer: Answer, rows: number[], columns: any[], hidden: Set<string>}} props */
function Tools({ answer, rows, columns, hidden }) {
  const { q, group } = state.value;
  const keys = useMemo(() => groupKeys(answer), [answer]);
  const [said, say] = useState("");
  const wrong = q !== "" && pattern(q) === null;
  const copy = (/** @type {string} */ form) => {
    copied(formed(answer, rows, columns, form)).then(
      () => say(`${grouped(rows.length)} rows copied as ${form}`),
      () => say(NOT_COPIED),
    );
  };
  const menu = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  useEffect(() => {
    const shut = (/** @type {Event} */ event) => {
      const isOutside = event.type === "click" && !menu.current?.contains(/** @type {Node} */ (event.target));
      if (!menu.current?.open || !(isOutside || (event instanceof KeyboardEvent && event.key === "Escape"))) return;
      if (!isOutside) menu.current.querySelector("summary")?.focus(); // what had the focus is shown no longer
      menu.current.open = false;
    };
    document.addEventListener("click", shut);
    document.addEventListener("keydown", shut);
    return () => {
      document.removeEventListener("click", shut);
      document.removeEventListener("keydown", shut);
    };
  }, []);
  const toggle = (/** @type {string} */ name) => {
    const now = hiddenColumns(answer, state.value.cols); // at this moment: another box may have been clicked since it was drawn
    if (!now.delete(name)) now.add(name);
    now.delete(NONE);
    choose({ cols: [...now].join(",") || NONE });
  };
  return html`
    <div class="tools">
      <label>search <input type="search" class="search" value=${q} aria-invalid=${wrong ? "true" : undefined}
        placeholder="regular expression" onInput=${(/** @type {any} */ event) => choose({ q: event.target.value })} /></label>
      ${(wrong || answer.refused) && html`<span role="alert">${wrong ? "not a regular expression" : printable(`only the rows that the page has are searched: ${answer.refused}`)}</span>`}
      ${keys.length > 0 && html`
        <label>group by <select value=${group} onChange=${(/** @type {any} */ event) => choose({ group: event.target.value, shut: "" })}>
          <option value="">nothing</option>
          ${keys.map((each) => html`<option value=${each.name}>${heading(each.name)}</option>`)}
        </select></label>`}
      <details class="menu" ref=${menu}>
        <summary>columns</summary>
        <ul>${answer.columns.map((column) => html`
          <li><label title=${column.meaning}><input type="checkbox" checked=${!hidden.has(column.name)}
            onChange=${() => toggle(column.name)} /> ${heading(column.name, answer.columns)}</label></li>`)}</ul>
      </details>
      <span class="copy">copy as ${["CSV", "Markdown", "JSON"].map((form) => html`
        <button class="quiet" onClick=${() => copy(form)}>${form}</button>`)}</span>
      <span role="status">${said}</span>
    </div>`;
}

/** The columns of keys by which some rows belong together. @param {Answer} answer */
function groupKeys(answer) {
  return answer.columns.filter((column, place) => (column.unit === "text" || column.unit === "number") &&
    new Set(answer.values[place]).size < answer.values[place].length && column.name !== "depth");
}

/** @param {string} text */
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not allowed");
}

/** Markdown that is rendered as this text; an underscore within a word needs no escape. @param {string} text */
const escaped = (text) => text.replace(/[\\`*[\]<>|#~&$]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\$&");

/** Rows for a spreadsheet, a text or a program, as `Answer` has them; no cell that a spreadsheet takes for a formula, and
 * what cannot be printed escaped, except in JSON.
 * @param {Answer} answer @param {number[]} rows @param {any[]} columns @param {string} form */
export function formed(answer, rows, columns, form) {
  const values = rows.map((row) => columns.map((column) => answer.values[column.place][row]));
  if (form === "JSON") {
    const objects = values.map((row) => Object.fromEntries(columns.map((column, at) => [column.name, row[at]])));
    return JSON.stringify(objects, null, 1);
  }
  if (form === "CSV") {
    const quoted = (/** @type {Value} */ value, /** @type {string} */ unit) => {
      if (value === null) return "";
      const text = unit === "text" ? printable(String(value)).replace(/^(?=[=+\-@])/, "'") : String(value);
      return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [columns.map((column) => column.name).join(","),
      ...values.map((row) => row.map((value, at) => quoted(value, columns[at].unit)).join(","))].join("\n") + "\n";
  }
  const lines = [columns.map((column) => escaped(heading(column.name, answer.columns))), columns.map((column) => (column.unit === "text" ? "---" : "---:")),
    ...values.map((row) => row.map((value, at) => escaped(shown(value, columns[at].unit))))];
  return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

/** How to get the same figures elsewhere. @param {{answer: Answer, part: {start: number, end: number} | null}} props */
function Same({ answer, part }) {
  const asked = part && !answer.part && within(answer, part);
  return html`
    <details class="same">
      <summary>the same in Python and on the command line</summary>
      <${Commands} python=${answer.python} cli=${answer.cli} sql=${answer.sql} />
      ${asked && html`<p>Of the window, whatever overlaps it:</p><${Commands} ...${asked} />`}
    </details>`;
}

/** Lines that can be copied one by one. @param {{python: string, cli: string, sql?: string}} props */
function Commands({ python, cli, sql }) {
  const [said, say] = useState("");
  const forms = [["Python", printable(python).replaceAll("\\n", "\n")], ["command", printable(cli)], ["SQL", printable(sql ?? "")]];
  const given = forms.filter(([, text]) => text);
  const copy = (/** @type {string} */ form, /** @type {string} */ text) => copied(text).then(() => say(`${form} copied`), () => say(NOT_COPIED));
  return html`
    <pre><code>${given.map(([, text]) => text).join("\n")}</code></pre>
    <p class="choice">copy ${given.map(([form, text]) => html`<button class="quiet" onClick=${() => copy(form, text)}>${form}</button>`)}
      <span role="status">${said}</span></p>`;
}
