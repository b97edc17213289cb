// Times as decimal text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace collector::read {

// Times at or beyond this many nanoseconds (146 years) from zero are not taken for times.
constexpr int64_t kMaxNanoseconds = int64_t{1} << 62;

// A JSON number of microseconds as whole nanoseconds, to the nearest and of two to the even one; nothing where the text
// is no finite number or no possible time. No binary double is on the way.
std::optional<int64_t> nanoseconds_of_microseconds(std::string_view text);

}  // namespace collector::read
