// The step as it is in the chosen window: where the file holds its rows, its answers are about that part.
import { useEffect, useMemo, useState } from "preact/hooks";
import { loadRows } from "./provider.js";
import { settledWindow } from "./state.js";
import { follows, partAnswer } from "./part/answers.js";
import { cutTo } from "./part/rows.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {import("./part/rows.js").Rows} Rows */

/** The step with answers about a part of it, each made when it is read.
 * @param {Step} step @param {Rows} rows @param {import("./part/rows.js").Part} part @returns {Step} */
export function partOf(step, rows, part) {
  const info = /** @type {import("./part/rows.js").RowsInfo} */ (step.rows);
  const asked = { info, rows, cut: cutTo(rows, part), answers: step.whole };
  /** @type {Record<string, import("./provider.js").Answer>} */
  const answers = {};
  for (const key of Object.keys(step.whole)) {
    /** @type {import("./provider.js").Answer | undefined} */
    let made;
    const get = () => (made ??= follows(step.whole, key) ? partAnswer(asked, key) : step.whole[key]);
    Object.defineProperty(answers, key, { enumerable: true, get });
  }
  return { ...step, answers, listed: answers };
}

/** @param {Step} step @param {number} place @returns {Step} */
export function usePartOf(step, place) {
  const [held, hold] = useState(/** @type {{of: Step, rows: Rows} | null} */ (null));
  const part = settledWindow.value;
  const isAsked = part !== null && step.rows;
  useEffect(() => {
    let is = true;
    if (isAsked && step.rows && held?.of !== step) loadRows(step.rows, place).then((rows) => is && hold({ of: step, rows }));
    return () => { is = false; };
  }, [step, Boolean(isAsked)]);
  return useMemo(() => (part && held?.of === step ? partOf(step, held.rows, part) : step), [step, held, part?.start, part?.end]);
}
