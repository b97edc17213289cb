// Conversion to and from UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace collector::stepstats {

// The length of the UTF-8 sequence of two or more bytes at `from`, and its code point; 0 if there is none.
inline size_t decode_utf8(const unsigned char* from, size_t available, uint32_t& code_point) {
  const uint32_t first = from[0];
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || available < length) return 0;
  code_point = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((from[i] & 0xC0) != 0x80) return 0;
    code_point = code_point << 6 | (from[i] & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  return code_point < kSmallest[length] || code_point > 0x10FFFF || surrogate ? 0 : length;
}

// Whether the whole text is UTF-8.
inline bool is_utf8(std::string_view text) {
  const auto* next = reinterpret_cast<const unsigned char*>(text.data());
  size_t left = text.size();
  uint64_t words[4];
  constexpr size_t kBytes = sizeof(words);
  for (; left >= kBytes; next += kBytes, left -= kBytes) {
    std::memcpy(words, next, kBytes);
    if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u) != 0) break;
  }
  while (left > 0) {
    uint64_t eight = 0;
    if (left >= sizeof(eight)) std::memcpy(&eight, next, sizeof(eight));
    if (left >= sizeof(eight) && (eight & 0x8080808080808080u) == 0) {
      next += sizeof(eight);
      left -= sizeof(eight);
      continue;
    }
    uint32_t code_point;
    const size_t length = *next < 0x80 ? 1 : decode_utf8(next, left, code_point);
    if (length == 0) return false;
    next += length;
    left -= length;
  }
  return true;
}

// The number of bytes at `from`, where decode_utf8 finds no sequence, that are shown as one U+FFFD: the longest prefix
// of a sequence, as Unicode recommends and Python does.
inline size_t broken_utf8_length(const unsigned char* from, size_t available) {
  const uint32_t first = from[0];
  if (first < 0xC2 || first > 0xF4) return 1;
  const uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (first < 0xE0 || available < 2 || from[1] < low || from[1] > high) return 1;
  return first >= 0xF0 && available > 2 && (from[2] & 0xC0) == 0x80 ? 3 : 2;
}

}  // namespace collector::stepstats
