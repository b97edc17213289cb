// The longest names, paths and other texts of annotations and ranges that are stored. One name of many megabytes would
// take the place of all records of a ring, and the paths of a deep recursion memory of the square of its depth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace collector::store {

inline constexpr size_t kLongestName = 4096;  // bytes

// The beginning of a text, of at most so many bytes and whole characters: up to three bytes less.
inline std::string_view beginning_of(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (most - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// What is stored of a text that is longer than kLongestName.
inline std::string cut_name(std::string_view text) {
  constexpr std::string_view kEllipsis = "…";
  return std::string(beginning_of(text, kLongestName - kEllipsis.size())).append(kEllipsis);
}

}  // namespace collector::store
