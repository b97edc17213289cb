// Letters of ASCII, whatever the locale.
#pragma once

namespace collector::stepstats {

constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
constexpr bool is_lower(char letter) { return letter >= 'a' && letter <= 'z'; }
constexpr bool is_upper(char letter) { return letter >= 'A' && letter <= 'Z'; }

}  // namespace collector::stepstats
