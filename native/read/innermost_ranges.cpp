#include "read/innermost_ranges.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>

namespace collector::read {
namespace {

std::vector<uint32_t> numbers_up_to(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Sorts rows that are not in order. Those of many files are.
template <typename IsBefore>
void order(std::vector<uint32_t>& rows, const IsBefore& is_before) {
  if (!std::is_sorted(rows.begin(), rows.end(), is_before)) std::sort(rows.begin(), rows.end(), is_before);
}

}  // namespace

Innermost innermost_ranges(const Ranges& ranges, const Moments& moments) {
  std::vector<uint32_t> by_start = numbers_up_to(ranges.threads.size());
  order(by_start, [&ranges](uint32_t a, uint32_t b) {
    return std::make_tuple(ranges.threads[a], ranges.starts_ns[a], ranges.ends_ns[b], a) <
           std::make_tuple(ranges.threads[b], ranges.starts_ns[b], ranges.ends_ns[a], b);
  });
  std::vector<uint32_t> by_time = numbers_up_to(moments.threads.size());
  order(by_time, [&moments](uint32_t a, uint32_t b) {
    return std::make_tuple(moments.threads[a], moments.times_ns[a], a) <
           std::make_tuple(moments.threads[b], moments.times_ns[b], b);
  });
  Innermost found{std::vector<int64_t>(moments.threads.size(), -1), std::vector<int64_t>(ranges.threads.size(), 0)};
  std::vector<uint32_t> open;
  size_t next = 0;
  const auto close_until = [&](int64_t time_ns) {
    while (!open.empty() && ranges.ends_ns[open.back()] <= time_ns) open.pop_back();
  };
  // Opens the ranges that begin up to a moment on a thread.
  const auto advance = [&](int64_t thread, int64_t time_ns) {
    for (; next < by_start.size(); ++next) {
      const uint32_t range = by_start[next];
      const int64_t own = ranges.threads[range];
      if (own > thread || (own == thread && ranges.starts_ns[range] > time_ns)) break;
      if (!open.empty() && ranges.threads[open.back()] != own) open.clear();
      close_until(ranges.starts_ns[range]);
      found.depths[range] = static_cast<int64_t>(open.size());
      open.push_back(range);
    }
  };
  for (const uint32_t moment : by_time) {
    const int64_t thread = moments.threads[moment];
    advance(thread, moments.times_ns[moment]);
    if (!open.empty() && ranges.threads[open.back()] != thread) open.clear();
    close_until(moments.times_ns[moment]);
    if (!open.empty()) found.ranges[moment] = open.back();
  }
  if (!by_start.empty()) advance(INT64_MAX, INT64_MAX);
  return found;
}

}  // namespace collector::read
