// What people search for: regular expressions, in which case does not matter.

/** @param {string} text @returns {RegExp | null} null: it is no regular expression. */
export function pattern(text) {
  try {
    return new RegExp(text, "i");
  } catch {
    return null;
  }
}
