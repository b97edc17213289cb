// The rows of an answer that are a tree, as an icicle draws them: each row with those inside it, and with the rest of them.
import { grouped, printable, shown } from "./numbers.js";

/** @typedef {import("./provider.js").Answer} Answer */
/** @typedef {{name: string, path: string, value: number, text: string, children: Node[]}} Node `path`: of a rest, that of
 *   the row around it. */

/** Words on what is not drawn row by row; "": all is. @param {Answer} answer @param {string} measure @param {string} noun */
export function restOfTree({ columns, left_out: rest = [] }, measure, noun) {
  if (rest.length === 0) return "";
  const [rows, total] = [1, 2].map((at) => rest.reduce((sum, each) => sum + Number(each[at]), 0));
  const { unit } = columns[columns.findIndex((each) => each.name === measure)];
  return `Not drawn one by one: ${grouped(rows)} further ${noun}, ${shown(total, unit)}. Where they are missing a box has their number and sum.`;
}

/** The outermost rows. What the page is not given of the tree stands where it is missing, as one node with its number and sum.
 * @param {Answer} answer @param {string} measure a column of totals @param {string} noun what a row is, in the plural
 * @returns {Node[]} */
export function rowTree(answer, measure, noun) {
  const at = (/** @type {string} */ name) => answer.columns.findIndex((each) => each.name === name);
  const [paths, depths, totals] = [answer.values[at("path")], answer.values[at("depth")], answer.values[at(measure)]];
  const { unit } = answer.columns[at(measure)];
  const root = { children: /** @type {Node[]} */ ([]) };
  /** @type {{children: Node[]}[]} */
  const open = [root];
  const nodes = paths.map((text, row) => {
    const [path, depth] = [String(text), Number(depths[row])];
    const name = printable(depth ? path.slice(path.lastIndexOf("/") + 1) : path);
    const node = { name, path, value: Number(totals[row]), text: shown(totals[row], unit), children: [] };
    open.length = depth + 1;
    open[depth].children.push(node);
    open.push(node);
    return node;
  });
  for (const [row, count, total] of answer.left_out ?? []) {
    const [around, path] = row < 0 ? [root, ""] : [nodes[row], nodes[row].path];
    const name = `${grouped(count)} further ${noun}`;
    around.children.push({ name, path, value: Number(total), text: shown(total, unit), children: [] });
  }
  return root.children;
}
