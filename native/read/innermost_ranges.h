// Which of the ranges of a thread was open at a moment.
#pragma once

#include <cstdint>
#include <vector>

namespace collector::read {

// Ranges of many threads. A range is open from its start on until before its end.
struct Ranges {
  std::vector<int64_t> threads;
  std::vector<int64_t> starts_ns;
  std::vector<int64_t> ends_ns;
};

// Moments on threads.
struct Moments {
  std::vector<int64_t> threads;
  std::vector<int64_t> times_ns;
};

struct Innermost {
  std::vector<int64_t> ranges;  // for each moment the range, -1: none was open
  std::vector<int64_t> depths;  // for each range how many were open around it
};

// The innermost range is the one that began last of those open; of those that began at once the shorter one, and of
// equal ones that of the larger number.
Innermost innermost_ranges(const Ranges& ranges, const Moments& moments);

}  // namespace collector::read
