// The order of the rows of a table by the values of one column.
import { isInfinite } from "./numbers.js";

/** @typedef {import("./numbers.js").Value} Value */

/** @param {Value} value */
function size(value) {
  return isInfinite(value) ? (value === "inf" ? Infinity : -Infinity) : Number(value);
}

/** @param {NonNullable<Value>} left @param {NonNullable<Value>} right @param {string} unit */
function compared(left, right, unit) {
  if (unit === "text") return String(left) < String(right) ? -1 : String(left) > String(right) ? 1 : 0;
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
  return (one, other) => {
    const [left, right] = [values[one.original], values[other.original]];
    if (left !== null && right !== null) return compared(left, right, unit);
    const order = Number(left === null) - Number(right === null);
    return isDescending() ? -order : order;
  };
}
