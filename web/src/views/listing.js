// Tables about no single step: the index of a test run, what benchmarks measured. Rows may lead to files beside the page.
import { html } from "htm/preact";
import { printable } from "../numbers.js";
import { AnswerTable } from "../table.js";

/** @typedef {{title: string, answer: import("../provider.js").Answer, lines: string[], links: string[], plain: boolean}} PageTable */

/** @param {{page: import("../provider.js").Page, tables: PageTable[]}} props */
export function Listing({ page, tables }) {
  return html`
    <header><h1>${printable(page.title)}</h1></header>
    <article>${tables.map((each, place) => html`
      ${each.answer.columns.length > 0
        ? html`<${AnswerTable} key=${place} answer=${each.answer} title=${each.title} isDefined=${false} plain=${each.plain} hrefs=${each.links} />`
        : html`<h2>${printable(each.title)}</h2>`}
      ${each.lines.map((line) => html`<p>${printable(line)}</p>`)}`)}</article>
    <footer><p>${page.format}, made by cupti-collector ${page.version}. Nothing here is loaded from anywhere.</p></footer>`;
}
