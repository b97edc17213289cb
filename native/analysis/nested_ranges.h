// The range around each range of a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/rows_by_start.h"

namespace collector::analysis {

struct NestedRanges {
  std::vector<int64_t> parents;  // for each range the row of its parent; -1: it has none
  std::vector<int64_t> depths;   // for each range the number of ranges around it
};

// The parent of a range is the range of its thread that began last before it and ended no earlier.
//
// `order` has the rows in order of threads, of starts, and of descending ends; of equal ranges the parent comes first.
// `threads` and `ends_ns` are by row. Throws std::out_of_range where `order` has another number than that of a row.
NestedRanges nested_ranges(const Column<int64_t>& order, const Column<int64_t>& threads, const Times& ends_ns);

}  // namespace collector::analysis
