// Times beside each other: at an axis the round ones that fit, with as many digits as tell them apart.
import { fixed } from "./numbers.js";

/** Unit and the power of ten of its length in ns, the longest first. @type {[string, number][]} */
const UNITS = [["s", 9], ["ms", 6], ["µs", 3], ["ns", 0]];
/** Pixels of a character at most, and between two labels at least. */
const CHARACTER = 7.7;
const BETWEEN = 8;
/** Pixels between two labels that are enough, and the number of labels for which a narrow axis has less. */
const ENOUGH = 110;
const FEW = 4;
/** Digits of its length that both ends of a window have. */
const DIGITS_OF_LENGTH = 3;

/** Times as texts of one unit, that of the longest, and with the same number of decimals, so that different times differ.
 * @param {number[]} times in ns @returns {string[]} */
export function timeTexts(times) {
  const whole = times.map((time) => Math.round(time) + 0); // and no -0
  const most = Math.max(...whole.map(Math.abs));
  const [unit, power] = UNITS.find(([, power]) => most >= 10 ** power) ?? UNITS[UNITS.length - 1];
  let decimals = 0;
  while (whole.some((time) => time % 10 ** (power - decimals) !== 0)) decimals++;
  return whole.map((time) => `${fixed(time / 10 ** power, decimals)} ${unit}`);
}

/** The ends of a window as texts that differ. @param {{start: number, end: number}} part @returns {string[]} */
export function endTexts({ start, end }) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(end - start, 1))) + 1 - DIGITS_OF_LENGTH);
  return timeTexts([start, end].map((time) => Math.round(time / step) * step));
}

/** Room for a label. @param {string} text */
const roomFor = (text) => text.length * CHARACTER + BETWEEN;

/** The times at an axis of a width in pixels, each with its text; "": it does not fit between its line and the end.
 * @param {{start: number, end: number}} part @param {number} width @returns {{time: number, text: string}[]} */
export function ticks({ start, end }, width) {
  const length = end - start;
  if (!(length > 0 && width > 0)) return [];
  let power = Math.max(0, Math.floor(Math.log10((length * BETWEEN) / width)));
  for (; 10 ** power <= length; power++) {
    for (const step of [1, 2, 5].map((each) => each * 10 ** power)) {
      /** @type {number[]} */
      const times = [];
      for (let time = Math.ceil(start / step) * step; time <= end; time += step) times.push(time);
      if (times.length === 0) continue;
      const texts = timeTexts(times);
      if ((step / length) * width < Math.max(...texts.map(roomFor), Math.min(ENOUGH, width / FEW))) continue;
      const isWithin = (/** @type {number} */ at) => ((times[at] - start) / length) * width + roomFor(texts[at]) - BETWEEN <= width;
      return times.map((time, at) => ({ time, text: isWithin(at) ? texts[at] : "" }));
    }
  }
  return [];
}
