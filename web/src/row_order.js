// The order of the rows of a table by the values of one column.
import { isInfinite } from "./numbers.js";
import { byCodePoints } from "./part/groups.js";

/** @typedef {import("./numbers.js").Value} Value */

/** @param {Value} value */
function size(value) {
  return isInfinite(value) ? (value === "inf" ? Infinity : -Infinity) : Number(value);
}

/** The parts of a name, of which every second one is a number without the zeros before it. @param {string} name */
function partsOf(name) {
  return name.split(/([0-9]+)/).map((part, place) => (place % 2 ? part.replace(/^0+/, "") : part));
}

/** The order in which people expect names with numbers, as the server has it (collector/text/natural_order.py).
 * @param {string[]} names @returns {(one: number, other: number) => number} of the names at two places */
function naturalOrder(names) {
  const parts = names.map(partsOf);
  return (one, other) => {
    const [left, right] = [parts[one], parts[other]];
    for (let place = 0; place < left.length && place < right.length; place++) {
      const order = (place % 2 && left[place].length - right[place].length) || byCodePoints(left[place], right[place]);
      if (order) return order;
    }
    return left.length - right.length || byCodePoints(names[one], names[other]);
  };
}

/** @param {NonNullable<Value>} left @param {NonNullable<Value>} right */
function compared(left, right) {
  if (isInfinite(left) || isInfinite(right)) return size(left) - size(right) || 0;
  if (typeof left === "string" || typeof right === "string") {
    const [first, second] = [BigInt(left), BigInt(right)];
    return first < second ? -1 : first > second ? 1 : 0;
  }
  return Number(left) - Number(right);
}

/** The order of rows by the values of a column, which are not asked of the table: thousands are compared at a click. Unknown
 * values come last in both directions, as on the server.
 * @param {Value[]} values @param {string} unit
 * @param {() => boolean | undefined} isDescending whether the table turns the order
 * @returns {(one: any, other: any) => number} */
export function orderOf(values, unit, isDescending) {
  if (unit !== "text" && values.every((each) => typeof each === "number")) {
    const numbers = /** @type {number[]} */ (values);
    return (one, other) => numbers[one.original] - numbers[other.original];
  }
  /** @type {ReturnType<typeof naturalOrder> | undefined} */
  let inOrder; // made for the first two names: most columns are never sorted
  return (one, other) => {
    const [left, right] = [values[one.original], values[other.original]];
    if (left !== null && right !== null) {
      return unit === "text" ? (inOrder ??= naturalOrder(values.map(String)))(one.original, other.original) : compared(left, right);
    }
    const order = Number(left === null) - Number(right === null);
    return isDescending() ? -order : order;
  };
}
