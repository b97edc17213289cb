#include "analysis/nested_ranges.h"

#include <cstddef>
#include <stdexcept>

namespace collector::analysis {

NestedRanges nested_ranges(const Column<int64_t>& order, const Column<int64_t>& threads, const Times& ends_ns) {
  NestedRanges found{std::vector<int64_t>(ends_ns.size, -1), std::vector<int64_t>(ends_ns.size, 0)};
  std::vector<size_t> open;
  for (size_t place = 0; place < order.size; ++place) {
    const auto row = static_cast<size_t>(order[place]);
    if (row >= ends_ns.size) throw std::out_of_range("the order names a row that is not there");
    if (!open.empty() && threads[open.back()] != threads[row]) open.clear();
    while (!open.empty() && ends_ns[open.back()] < ends_ns[row]) open.pop_back();
    if (!open.empty()) {
      found.parents[row] = static_cast<int64_t>(open.back());
      found.depths[row] = static_cast<int64_t>(open.size());
    }
    open.push_back(row);
  }
  return found;
}

}  // namespace collector::analysis
