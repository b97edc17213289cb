// What an answer about a part of a step lacks: the losses that `collector.analysis` adds to those of the ledger, which concern
// the whole step. The sentences are those of collector/web/part_notes.py.
import { counted } from "../numbers.js";
import { linksOf } from "./backward.js";
import { allocationsIn, oddOperationsIn } from "./memory.js";

/** @typedef {import("./answers.js").Asked} Asked */
/** @typedef {{repetitions: string, without_call: string, before_call: string, unknown_frees: string, addresses_in_use: string,
 *   odd_operations: string, unrecorded_ops: string, ambiguous_ops: string}} PartLosses */

/** Activities that equal another one in every column. @param {Asked} asked @returns {[keyof PartLosses, number][]} */
function ofRepetitions({ rows: { work }, cut }) {
  return [["repetitions", cut.work.filter((row) => work.repeats[row]).length]];
}

/** @param {Asked} asked @returns {[keyof PartLosses, number][]} */
function ofQueues(asked) {
  const { rows: { work, calls }, cut } = asked;
  const called = cut.work.filter((row) => work.call[row]);
  const early = called.filter((row) => calls.start[work.call[row] - 1] > work.start[row]).length; // the clocks disagree
  return [...ofRepetitions(asked), ["without_call", cut.work.length - called.length], ["before_call", early]];
}

/** @param {Asked} asked @returns {[keyof PartLosses, number][]} */
function ofMemory(asked) {
  const { held, unknown } = allocationsIn(asked);
  const inUse = held.filter((each) => each.freed < Infinity && each.freedBy < 0).length;
  return [["unknown_frees", unknown.length], ["addresses_in_use", inUse], ["odd_operations", oddOperationsIn(asked)]];
}

/** @param {Asked} asked @returns {[keyof PartLosses, number][]} */
function ofBackward(asked) {
  const unknown = linksOf(asked).filter((each) => each.op < 0);
  const ambiguous = unknown.filter((each) => each.isAmbiguous).length;
  return [["unrecorded_ops", unknown.length - ambiguous], ["ambiguous_ops", ambiguous]];
}

/** Question -> the losses that its answers state. @type {Record<string, (asked: Asked) => [keyof PartLosses, number][]>} */
const OF_QUESTIONS = {
  ...Object.fromEntries(["devices", "concurrency", "streams", "overlap"].map((question) => [question, ofRepetitions])),
  queue: ofQueues, memory: ofMemory, memory_growth: ofMemory, backward: ofBackward,
};

/** @param {Asked} asked @param {string} key of the answer @returns {string[]} */
export function lossesOn(asked, key) {
  const found = OF_QUESTIONS[key.split("/")[0]]?.(asked) ?? [];
  const sentences = asked.info.notes.losses;
  return [...asked.losses, ...found.filter(([, count]) => count > 0).map(([name, count]) => counted(sentences[name], count))];
}
