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
  const asked = { info, rows, cut: cutTo(rows, part), answers: step.whole, losses: step.losses };
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

/** The step as it is in the chosen window, or as a whole where the rows of the file cannot be read, and why they cannot.
 * @param {Step} step @param {number} place @returns {[Step, string]} */
export function usePartOf(step, place) {
  const [held, hold] = useState(/** @type {{of: Step, rows: Rows | null, why: string} | null} */ (null));
  const part = settledWindow.value;
  const isAsked = part !== null && step.rows;
  useEffect(() => {
    let is = true;
    if (isAsked && step.rows && held?.of !== step) {
      loadRows(step.rows, place).then(
        (rows) => is && hold({ of: step, rows, why: "" }),
        (error) => is && hold({ of: step, rows: null, why: error.message }),
      );
    }
    return () => { is = false; };
  }, [step, Boolean(isAsked)]);
  const rows = held?.of === step ? held.rows : null;
  const ofPart = useMemo(() => (part && rows ? partOf(step, rows, part) : step), [step, rows, part?.start, part?.end]);
  return [ofPart, isAsked && held?.of === step ? held.why : ""];
}
