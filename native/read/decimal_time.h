// Times as decimal text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace collector::read {

// Numbers this far from zero (146 years in nanoseconds) or farther are not possible times.
constexpr int64_t kMaxNanoseconds = int64_t{1} << 62;

// The integer of nanoseconds nearest to a decimal number of microseconds, ties to even; nothing if the text is not a
// finite number or not a possible time. The result is exact, because no floating-point number is involved.
std::optional<int64_t> nanoseconds_of_microseconds(std::string_view text);

}  // namespace collector::read
