// Intervals [start, end) of whole nanoseconds: unions, covered lengths and gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/rows_by_start.h"

namespace collector::analysis {

// Intervals as two columns.
struct IntervalColumns {
  Times starts;
  Times ends;

  size_t size() const { return starts.size; }
};

struct Intervals {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;

  void add(int64_t start, int64_t end) {
    starts.push_back(start);
    ends.push_back(end);
  }
  IntervalColumns columns() const { return {{starts.data(), starts.size()}, {ends.data(), ends.size()}}; }
};

// The length of an interval. It wraps if times of a damaged file are farther apart than INT64_MAX.
inline int64_t length_of(int64_t start, int64_t end) {
  return static_cast<int64_t>(static_cast<uint64_t>(end) - static_cast<uint64_t>(start));
}

// The union of intervals: intervals in order that do not touch each other. An interval that ends before it starts
// counts as empty. An empty interval that touches no other one is part of the union.
Intervals union_of(const IntervalColumns& intervals);

// For each interval the length of its part that a union covers; negative for an interval that ends before it starts.
std::vector<int64_t> covered_lengths(const IntervalColumns& covering, const IntervalColumns& intervals);

// The length of the intersection of two unions.
int64_t overlap_length(const IntervalColumns& one, const IntervalColumns& other);

// The difference of two unions.
Intervals difference_of(const IntervalColumns& from, const IntervalColumns& taken);

// For each group the length of the union of its intervals. `groups` has the group of each interval.
std::vector<int64_t> covered_by_group(const IntervalColumns& intervals, const Column<int64_t>& groups,
                                      size_t num_groups);

struct Gaps {
  Intervals free;
  std::vector<int64_t> next;  // row of the first interval that starts at the end of the gap; -1: the window ends there
};

// The gaps between intervals in a window.
Gaps gaps_between(const IntervalColumns& intervals, int64_t begin, int64_t end);

}  // namespace collector::analysis
