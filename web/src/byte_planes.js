// Columns of whole numbers as planes of bytes, the lowest bytes of all values first (collector/web/byte_planes.py).

/** Columns one behind the other, each with its number of bytes a value.
 * @param {Uint8Array} bytes @param {number} offset @param {number} count values of each column
 * @param {number[]} widths @returns {Float64Array[]} */
export function columnsOf(bytes, offset, count, widths) {
  let at = offset;
  return widths.map((width) => {
    const values = new Float64Array(count);
    for (let plane = 0, weight = 1; plane < width; plane++, weight *= 256, at += count) {
      for (let row = 0; row < count; row++) values[row] += bytes[at + row] * weight;
    }
    return values;
  });
}
