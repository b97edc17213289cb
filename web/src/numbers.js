// Figures as text, digit for digit as the terminal has them (collector/text/quantities.py, collector/analysis/answer.py).

/** @typedef {number | string | null} Value An integer too large for a number comes as text, and so does "inf". */

/** Digits of a finite number with `decimals` of them behind the point, halves to even as Python rounds.
 * @param {number} value @param {number} decimals */
export function fixed(value, decimals) {
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  // All digits of the number itself, which has at most 1074 of them behind its point; 60 tell a half from its neighbours.
  const exact = Math.abs(value).toFixed(Math.min(decimals + 60, 100));
  const point = exact.indexOf(".");
  const whole = exact.slice(0, point);
  const rest = exact.slice(point + 1);
  let digits = BigInt(whole + rest.slice(0, decimals));
  const tail = rest.slice(decimals);
  const half = "5".padEnd(tail.length, "0");
  if (tail > half || (tail === half && digits % 2n === 1n)) digits += 1n;
  const text = digits.toString().padStart(decimals + 1, "0");
  const cut = text.length - decimals;
  return sign + text.slice(0, cut) + (decimals ? "." + text.slice(cut) : "");
}

/** Python's format "g": so many significant digits, no zeros at the end.
 * @param {number} value @param {number} precision */
export function general(value, precision) {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  let exponent = Math.floor(Math.log10(Math.abs(value)));
  let text = scaled(value, precision, exponent);
  const digits = text.replace(/^-?/, "").replace(".", "").replace(/^0+/, "");
  if (digits.length > precision) text = scaled(value, precision, ++exponent);
  else if (digits.length < precision) text = scaled(value, precision, --exponent);
  if (exponent < -4 || exponent >= precision) {
    const [mantissa, power] = value.toExponential(precision - 1).split("e");
    const size = Math.abs(Number(power)).toString().padStart(2, "0");
    return `${trimmed(mantissa)}e${Number(power) < 0 ? "-" : "+"}${size}`;
  }
  return trimmed(text);
}

/** @param {number} value @param {number} precision @param {number} exponent */
function scaled(value, precision, exponent) {
  const decimals = precision - 1 - exponent;
  if (decimals >= 0) return fixed(value, Math.min(decimals, 40));
  return fixed(value, 0);
}

/** @param {string} text */
function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Thousands apart. @param {string | number} whole */
export function grouped(whole) {
  return String(whole).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A text with a number, and the matching form of each `[singular|plural]`. @param {string} text @param {number} count */
export function counted(text, count) {
  return text.replace(/\[([^[|\]]*)\|([^[|\]]*)\]/g, (_, one, more) => (count === 1 ? one : more)).replace("{:,}", grouped(count));
}

/** @param {number} value */
function fourDigits(value) {
  return value >= 1000 ? grouped(fixed(value, 0)) : general(value, 4);
}

/** @type {[string, number][]} */
const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]];
/** @type {[string, number][]} */
const SIZES = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];

/** A time as people read it. @param {number} nanoseconds @returns {string} */
export function timeText(nanoseconds) {
  if (nanoseconds < 0) return `-${timeText(-nanoseconds)}`;
  for (const [unit, length] of TIMES) if (nanoseconds >= length) return `${fourDigits(nanoseconds / length)} ${unit}`;
  return `${fixed(nanoseconds, 0)} ns`;
}

/** A size as people read it. @param {number} bytes */
export function sizeText(bytes) {
  for (const [unit, size] of SIZES) if (bytes >= size) return `${fourDigits(bytes / size)} ${unit}`;
  return bytes === 1 ? "1 byte" : `${bytes} bytes`;
}

/** Names come from strangers: what cannot be seen is shown as an escape. @param {string} text */
export function printable(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (each) => {
    const known = /** @type {Record<string, string>} */ ({ "\n": "\\n", "\t": "\\t", "\r": "\\r" })[each];
    if (known) return known;
    const code = /** @type {number} */ (each.codePointAt(0));
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
    return `\\U${code.toString(16).padStart(8, "0")}`;
  });
}

/** @param {Value} value */
export function isInfinite(value) {
  return value === "inf" || value === "-inf";
}

/** A value of a column as people read it. @param {Value} value @param {string} unit */
export function shown(value, unit) {
  if (value === null) return "";
  if (unit === "text") return printable(String(value));
  if (isInfinite(value)) return String(value);
  const number = Number(value);
  switch (unit) {
    case "ns": return timeText(number);
    case "bytes": return sizeText(number);
    case "bytes/s": return `${general(number / 1e9, 4)} GB/s`;
    case "count": return grouped(String(value));
    case "share": return `${fixed(number * 100, 1)}%`;
    case "ratio": return general(number, 3);
    default: return String(value);
  }
}

/** All digits of a value, for whoever wants them. @param {Value} value @param {string} unit */
export function exact(value, unit) {
  if (value === null) return "not known";
  if (unit === "ns") return `${grouped(String(value))} ns`;
  if (unit === "bytes") return `${grouped(String(value))} bytes`;
  return unit === "text" ? printable(String(value)) : String(value);
}
