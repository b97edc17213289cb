#include "draw/series.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace collector::draw {
namespace {

// Sets the value from a time on, if it differs from the value before.
void set_value(std::vector<Point>& points, int64_t time_ns, int64_t value) {
  if (!points.empty() && points.back().time_ns == time_ns) points.pop_back();
  const int64_t before = points.empty() ? 0 : points.back().value;
  if (value != before) points.push_back({time_ns, value});
}

}  // namespace

std::vector<Point> count_busy(const std::vector<std::vector<Interval>>& streams) {
  // The next change of each stream: (time, stream). Changes with an even index begin an interval, those with an odd
  // index end it.
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>, std::greater<>> next;
  std::vector<size_t> changes_done(streams.size(), 0);
  const auto push = [&](size_t stream) {
    const size_t change = changes_done[stream];
    if (change / 2 == streams[stream].size()) return;
    const Interval& interval = streams[stream][change / 2];
    next.emplace(change % 2 == 0 ? interval.start_ns : interval.end_ns, stream);
  };
  for (size_t stream = 0; stream < streams.size(); ++stream) push(stream);
  std::vector<Point> points;
  int64_t busy = 0;
  while (!next.empty()) {
    const auto [time_ns, stream] = next.top();
    next.pop();
    busy += changes_done[stream]++ % 2 == 0 ? 1 : -1;
    set_value(points, time_ns, busy);
    push(stream);
  }
  return points;
}

std::vector<Point> running_total(std::vector<Delta>& deltas) {
  std::sort(deltas.begin(), deltas.end(), [](const Delta& a, const Delta& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.amount < b.amount;
  });
  std::vector<Point> points;
  int64_t total = 0;
  for (const Delta& delta : deltas) {
    if (__builtin_add_overflow(total, delta.amount, &total))
      break;  // no machine has this much memory, so the remaining changes are unreliable
    set_value(points, delta.time_ns, total);
  }
  return points;
}

}  // namespace collector::draw
