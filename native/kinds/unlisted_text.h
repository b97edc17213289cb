// The texts of values of enumerations that a newer CUPTI added. The same are in collector/recording/kind_names.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collector::stepstats {

inline constexpr size_t kLongestUnlistedText = 8;  // "kind 255": the columns have 8 bits

inline constexpr auto kUnlistedTexts = [] {
  std::array<std::array<char, kLongestUnlistedText>, 256> texts{};
  for (size_t number = 0; number < texts.size(); ++number) {
    size_t place = 0;
    for (const char letter : std::string_view("kind ")) texts[number][place++] = letter;
    for (size_t unit = number < 10 ? 1 : number < 100 ? 10 : 100; unit > 0; unit /= 10) {
      texts[number][place++] = static_cast<char>('0' + number / unit % 10);
    }
  }
  return texts;
}();

// "kind 42"; a number of more than 8 bits is only in a damaged file.
constexpr std::string_view unlisted_text(int64_t value) {
  if (value < 0 || value >= static_cast<int64_t>(kUnlistedTexts.size())) return "<unknown>";
  const size_t unused = value < 10 ? 2 : value < 100 ? 1 : 0;
  return {kUnlistedTexts[static_cast<size_t>(value)].data(), kLongestUnlistedText - unused};
}

}  // namespace collector::stepstats
