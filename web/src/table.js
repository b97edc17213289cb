// An answer as a table: sorted, searched, with the columns that were chosen. Figures are the answer's own.
import { html } from "htm/preact";
import { useMemo, useState } from "preact/hooks";
import { createTable, getCoreRowModel, getFilteredRowModel, getSortedRowModel } from "@tanstack/table-core";
import { choose, state } from "./state.js";
import { exact, grouped, printable, shown } from "./numbers.js";

/** @typedef {import("./provider.js").Answer} Answer */
/** @typedef {import("./numbers.js").Value} Value */

const FIRST_ROWS = 200;
const MANY_COLUMNS = 9;
/** Says that no column is hidden. */
const NONE = "-";

/** @param {string} name The name of a column whose values say their unit. */
export function heading(name) {
  return name.replace(/_ns$/, "").replace(/^num_/, "").replaceAll("_", " ");
}

/** @param {Value} left @param {Value} right @param {string} unit */
function compared(left, right, unit) {
  if (unit === "text") return String(left) < String(right) ? -1 : String(left) > String(right) ? 1 : 0;
  if (typeof left === "string" || typeof right === "string") {
    const [first, second] = [BigInt(left ?? 0), BigInt(right ?? 0)];
    return first < second ? -1 : first > second ? 1 : 0;
  }
  return Number(left) - Number(right);
}

/** @param {string} text @returns {RegExp | null} null: it is no regular expression. */
export function pattern(text) {
  try {
    return new RegExp(text, "i");
  } catch {
    return null;
  }
}

/** Columns that are not shown: those that were chosen, else, of many, those of figures that are 0 in every row.
 * @param {Answer} answer @param {string} chosen */
function hiddenColumns(answer, chosen) {
  if (chosen) return new Set(chosen.split(","));
  if (answer.columns.length < MANY_COLUMNS) return new Set();
  return new Set(answer.columns.filter((column, place) =>
    column.unit !== "text" && column.unit !== "number" && answer.values[place].every((value) => value === 0)).map((each) => each.name));
}

/** The rows that are left after search, in order, and the columns that are shown.
 * @param {Answer} answer @param {{q: string, sort: string, cols: string}} chosen @param {Set<number> | null} kept */
function useRows(answer, chosen, kept) {
  const table = useMemo(() => {
    const rows = Array.from({ length: answer.values[0]?.length ?? 0 }, (_, row) => row);
    return createTable({
      data: rows,
      columns: answer.columns.map((column, place) => ({
        id: column.name,
        accessorFn: (/** @type {number} */ row) => answer.values[place][row],
        sortUndefined: "last",
        sortDescFirst: column.unit !== "text",
        sortingFn: (/** @type {any} */ a, /** @type {any} */ b) =>
          compared(a.getValue(column.name), b.getValue(column.name), column.unit),
      })),
      getCoreRowModel: getCoreRowModel(),
      getFilteredRowModel: getFilteredRowModel(),
      getSortedRowModel: getSortedRowModel(),
      globalFilterFn: (row, _, found) => found(row.original),
      getColumnCanGlobalFilter: () => true,
      onStateChange: () => {},
      renderFallbackValue: null,
      state: {},
    });
  }, [answer]);
  const [by, order] = chosen.sort.split(".");
  const sorting = answer.columns.some((each) => each.name === by) ? [{ id: by, desc: order !== "asc" }] : [];
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
      globalFilter: chosen.q || kept ? search : undefined,
    },
  }));
  const columns = answer.columns.map((column, place) => ({ ...column, place })).filter((each) => !hidden.has(each.name));
  return { rows: table.getRowModel().rows.map((each) => each.original), columns, sorting: sorting[0], hidden };
}

/** One answer with all that can be done to it.
 * @param {{answer: Answer, title?: string, kept?: Set<number> | null, note?: string, least?: boolean,
 *   onRow?: (row: number) => void, rowHelp?: string}} props */
export function AnswerTable({ answer, title, kept = null, note = "", least = false, onRow, rowHelp }) {
  const chosen = least ? { q: "", sort: "", cols: "", rows: "" } : state.value;
  const { rows, columns, sorting, hidden } = useRows(answer, chosen, kept);
  const most = least ? 8 : chosen.rows === "all" ? Infinity : FIRST_ROWS;
  const cut = rows.slice(0, most);
  const button = Math.max(0, columns.findIndex((column) => column.unit !== "number"));
  const depth = answer.columns.findIndex((column) => column.name === "depth");
  const isTree = depth >= 0 && answer.columns[0].name === "path" && !sorting && !chosen.q && !least;
  const largest = columns.map((column) =>
    column.unit === "share" ? Math.max(1e-9, ...cut.map((row) => Number(answer.values[column.place][row]) || 0)) : 1);
  return html`
    <section class="answer" aria-label=${title ?? heading(answer.question)}>
      ${title && html`<h2>${title}</h2>`}
      <p class="definition">${answer.definition}</p>
      ${!least && html`<${Tools} answer=${answer} rows=${rows} columns=${columns} hidden=${hidden} />`}
      ${note && html`<p class="note">${note}</p>`}
      <div class="scrolled" tabindex="0" role="region" aria-label=${`${title ?? heading(answer.question)}: table`}>
        <table>
          <thead>
            <tr>${columns.map((column) => html`<${Head} column=${column} sorting=${sorting} fixed=${least} />`)}</tr>
          </thead>
          <tbody>
            ${cut.map((row) => html`
              <tr key=${row} class=${onRow ? "chosen-by-click" : ""} title=${onRow ? rowHelp : undefined}
                onClick=${onRow && (() => onRow(row))}>
                ${columns.map((column, at) => html`<${Cell} value=${answer.values[column.place][row]} column=${column}
                  share=${column.unit === "share" ? Number(answer.values[column.place][row]) / largest[at] : 0}
                  act=${onRow && at === button ? () => onRow(row) : undefined} tree=${isTree ? answer.values[depth][row] : null} />`)}
              </tr>`)}
          </tbody>
          ${!least && rows.length === answer.rows && Object.keys(answer.totals).length > 0 && html`
            <tfoot><tr>${columns.map((column, at) => html`
              <td class=${column.unit === "text" ? "" : "figure"}>${column.name in answer.totals
                ? html`<span title=${exact(answer.totals[column.name], column.unit)}>${shown(answer.totals[column.name], column.unit)}</span>`
                : at === 0 ? "all" : ""}</td>`)}</tr></tfoot>`}
        </table>
      </div>
      <p class="below">
        ${cut.length < rows.length && !least && html`
          <button class="quiet" onClick=${() => choose({ rows: "all" })}>show all ${grouped(rows.length)} rows</button> `}
        ${answer.values[0]?.length < answer.rows && !least && html`
          <span>The file holds the first ${grouped(answer.values[0].length)} of ${grouped(answer.rows)} rows.</span>`}
        ${rows.length === 0 && html`<span>${chosen.q || kept ? "No row fits." : "There is nothing of it in this step."}</span>`}
      </p>
      ${!least && html`<${Same} answer=${answer} />`}
    </section>`;
}

/** @param {{column: any, sorting: any, fixed: boolean}} props */
function Head({ column, sorting, fixed }) {
  const is = sorting?.id === column.name ? (sorting.desc ? "descending" : "ascending") : undefined;
  const figure = column.unit === "text" ? "" : "figure";
  if (fixed) return html`<th scope="col" class=${figure} title=${column.meaning}>${heading(column.name)}</th>`;
  // A click leads through these in turn, and back to the order of the answer.
  const turns = column.unit === "text" ? ["ascending", "descending"] : ["descending", "ascending"];
  const next = turns[is ? turns.indexOf(is) + 1 : 0];
  const sort = next ? `${column.name}.${next === "ascending" ? "asc" : "desc"}` : "";
  return html`
    <th scope="col" class=${figure} aria-sort=${is}>
      <button class="heading" title=${column.meaning} onClick=${() => choose({ sort })}>
        ${heading(column.name)}<span aria-hidden="true">${is === "descending" ? " ▼" : is === "ascending" ? " ▲" : ""}</span>
      </button>
    </th>`;
}

/** @param {{value: Value, column: any, share: number, act?: () => void, tree: Value}} props */
function Cell({ value, column, share, act, tree }) {
  const text = shown(value, column.unit);
  if (column.unit === "text") {
    // In the order of a tree each path stands below the one around it, so that its last part is enough.
    const isInside = tree && column.name === "path";
    const whole = html`<span class="name" title=${text} style=${isInside ? { paddingLeft: `${1.1 * Number(tree)}rem` } : {}}>${
      isInside ? text.slice(text.lastIndexOf("/") + 1) : text}</span>`;
    return html`<td class=${column.name === "meaning" ? "prose" : ""}>${act ? html`<button class="row" onClick=${(/** @type {Event} */ event) => { event.stopPropagation(); act(); }}>${whole}</button>` : whole}</td>`;
  }
  return html`
    <td class=${column.unit === "share" ? "figure share" : "figure"} title=${exact(value, column.unit)}>
      ${column.unit === "share" && html`<span class="bar" aria-hidden="true"><span style=${{ width: `${100 * share}%` }}></span></span>`}
      ${act ? html`<button class="row" onClick=${(/** @type {Event} */ event) => { event.stopPropagation(); act(); }}>${text}</button>` : text}
    </td>`;
}

/** @param {{answer: Answer, rows: number[], columns: any[], hidden: Set<string>}} props */
function Tools({ answer, rows, columns, hidden }) {
  const { q } = state.value;
  const [said, say] = useState("");
  const wrong = q !== "" && pattern(q) === null;
  const copy = (/** @type {string} */ form) => {
    copied(formed(answer, rows, columns, form)).then(
      () => say(`${grouped(rows.length)} rows copied as ${form}`),
      () => say("the browser does not let this page copy"),
    );
  };
  const toggle = (/** @type {string} */ name) => {
    const now = new Set(hidden);
    if (!now.delete(name)) now.add(name);
    now.delete(NONE);
    choose({ cols: [...now].join(",") || NONE });
  };
  return html`
    <div class="tools">
      <label>search <input type="search" class="search" value=${q} aria-invalid=${wrong ? "true" : undefined}
        placeholder="regular expression" onInput=${(/** @type {any} */ event) => choose({ q: event.target.value })} /></label>
      ${wrong && html`<span role="alert">not a regular expression</span>`}
      <details class="menu">
        <summary>columns</summary>
        <ul>${answer.columns.map((column) => html`
          <li><label title=${column.meaning}><input type="checkbox" checked=${!hidden.has(column.name)}
            onChange=${() => toggle(column.name)} /> ${heading(column.name)}</label></li>`)}</ul>
      </details>
      <span class="copy">copy as ${["CSV", "Markdown", "JSON"].map((form) => html`
        <button class="quiet" onClick=${() => copy(form)}>${form}</button>`)}</span>
      <span role="status">${said}</span>
    </div>`;
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

/** Rows for a spreadsheet, a text or a program; exact values, and no cell that a spreadsheet takes for a formula.
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
      const text = unit === "text" && /^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [columns.map((column) => column.name).join(","),
      ...values.map((row) => row.map((value, at) => quoted(value, columns[at].unit)).join(","))].join("\n") + "\n";
  }
  const lines = [columns.map((column) => column.name), columns.map((column) => (column.unit === "text" ? "---" : "---:")),
    ...values.map((row) => row.map((value, at) => shown(value, columns[at].unit).replaceAll("|", "\\|")))];
  return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

/** How to get the same figures elsewhere. @param {{answer: Answer}} props */
function Same({ answer }) {
  return html`
    <details class="same">
      <summary>the same in Python and on the command line</summary>
      <pre><code>${printable(answer.python)}${"\n"}${printable(answer.cli)}</code></pre>
    </details>`;
}
