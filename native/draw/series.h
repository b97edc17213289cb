// Counters as step functions of time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace collector::draw {

struct Interval {
  int64_t start_ns;
  int64_t end_ns;
};

struct Point {
  int64_t time_ns;
  int64_t value;  // from this time on
};

// The number of busy streams. Each stream's intervals must be sorted and disjoint. Points are added only where the
// number changes.
std::vector<Point> count_busy(const std::vector<std::vector<Interval>>& streams);

// A change of an amount.
struct Delta {
  int64_t time_ns;
  int64_t amount;
};

// The running total of the changes, with one point per time at which it changes. Sorts the changes.
std::vector<Point> running_total(std::vector<Delta>& deltas);

}  // namespace collector::draw
