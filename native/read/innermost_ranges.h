// The innermost open range of a thread at a moment.
#pragma once

#include <cstdint>
#include <vector>

namespace collector::read {

// Ranges of many threads. A range is open from its start to its end, the end excluded.
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
  std::vector<int64_t> ranges;  // for each moment the index of the range; -1: none was open
  // For each range the number of ranges around it. A range that ends inside a later one counts until the later one
  // ends.
  std::vector<int64_t> depths;
};

// The innermost range is the open range that began last. Of ranges that began at the same time it is the shorter one,
// and of equal ranges the one with the larger index.
Innermost innermost_ranges(const Ranges& ranges, const Moments& moments);

}  // namespace collector::read
