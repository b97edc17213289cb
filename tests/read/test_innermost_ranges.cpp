// Which range was open, against trying every one.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>

#include "read/innermost_ranges.h"

using namespace collector::read;

TEST_CASE("the innermost range is the one that began last of those open") {
  std::mt19937 random(5);
  const auto below = [&random](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  for (int round = 0; round < 300; ++round) {
    Ranges ranges;
    Moments moments;
    for (int64_t i = below(12); i > 0; --i) {
      ranges.threads.push_back(below(3));
      ranges.starts_ns.push_back(below(10));
      ranges.ends_ns.push_back(ranges.starts_ns.back() + below(6));
    }
    for (int64_t i = below(12); i > 0; --i) {
      moments.threads.push_back(below(4));
      moments.times_ns.push_back(below(16));
    }
    const Innermost found = innermost_ranges(ranges, moments);
    for (size_t moment = 0; moment < moments.threads.size(); ++moment) {
      int64_t best = -1;
      for (size_t range = 0; range < ranges.threads.size(); ++range) {
        if (ranges.threads[range] != moments.threads[moment]) continue;
        if (ranges.starts_ns[range] > moments.times_ns[moment]) continue;
        if (ranges.ends_ns[range] <= moments.times_ns[moment]) continue;
        const auto at = static_cast<size_t>(best);
        if (best < 0 || ranges.starts_ns[range] > ranges.starts_ns[at] ||
            (ranges.starts_ns[range] == ranges.starts_ns[at] && ranges.ends_ns[range] <= ranges.ends_ns[at])) {
          best = static_cast<int64_t>(range);
        }
      }
      CHECK(found.ranges[moment] == best);
    }
  }
}

TEST_CASE("a range knows how many are around it") {
  const Ranges ranges{{1, 1, 1, 2, 1}, {0, 1, 1, 1, 9}, {9, 5, 3, 4, 12}};
  CHECK(innermost_ranges(ranges, {}).depths == std::vector<int64_t>{0, 1, 2, 0, 0});
}
