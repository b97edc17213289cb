#include "analysis/intervals.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace collector::analysis {
namespace {

// Calls `visit(row, start, end)` for the intervals in the order of their starts, with `end` no earlier than `start`.
template <typename Visit>
void for_each_by_start(const IntervalColumns& intervals, Visit visit) {
  const std::vector<Times> tables{intervals.starts};
  const std::vector<Run> runs = ascending_runs(intervals.starts);
  RowsByStart rows(tables, runs);
  for (RowsByStart::Row row{}; rows.next(row);) {
    visit(row.row, row.start, std::max(row.start, intervals.ends[row.row]));
  }
}

// The length that a union covers before a time.
class CoveredBefore {
 public:
  explicit CoveredBefore(const IntervalColumns& covering) : covering_(covering) {
    lengths_.reserve(covering.size() + 1);
    lengths_.push_back(0);
    for (size_t place = 0; place < covering.size(); ++place) {
      lengths_.push_back(lengths_.back() +
                         static_cast<uint64_t>(length_of(covering.starts[place], covering.ends[place])));
    }
  }

  uint64_t operator()(int64_t time) {
    const int64_t* const first = covering_.starts.values;
    const size_t begun =
        near(time) ? begun_ : static_cast<size_t>(std::upper_bound(first, first + covering_.size(), time) - first);
    begun_ = begun;
    if (begun == 0) return 0;
    const int64_t last_end = covering_.ends[begun - 1];
    return lengths_[begun] - (last_end > time ? static_cast<uint64_t>(length_of(time, last_end)) : 0);
  }

 private:
  // Whether the intervals that begin before `time` are found from the time before in a few steps. Most times ascend.
  bool near(int64_t time) {
    for (int step = 0; step < 4; ++step) {
      const bool has_begun = begun_ == 0 || covering_.starts[begun_ - 1] <= time;
      if (!has_begun) return false;
      if (begun_ == covering_.size() || covering_.starts[begun_] > time) return true;
      ++begun_;
    }
    return false;
  }

  const IntervalColumns covering_;
  std::vector<uint64_t> lengths_;
  size_t begun_ = 0;
};

}  // namespace

Intervals union_of(const IntervalColumns& intervals) {
  Intervals joined;
  for_each_by_start(intervals, [&joined](size_t, int64_t start, int64_t end) {
    if (joined.ends.empty() || start > joined.ends.back()) {
      joined.add(start, end);
    } else {
      joined.ends.back() = std::max(joined.ends.back(), end);
    }
  });
  return joined;
}

std::vector<int64_t> covered_lengths(const IntervalColumns& covering, const IntervalColumns& intervals) {
  CoveredBefore before_start(covering);
  CoveredBefore before_end(before_start);
  std::vector<int64_t> lengths(intervals.size());
  for (size_t row = 0; row < intervals.size(); ++row) {
    lengths[row] = static_cast<int64_t>(before_end(intervals.ends[row]) - before_start(intervals.starts[row]));
  }
  return lengths;
}

int64_t overlap_length(const IntervalColumns& one, const IntervalColumns& other) {
  uint64_t length = 0;
  for (size_t mine = 0, theirs = 0; mine < one.size() && theirs < other.size();) {
    const int64_t start = std::max(one.starts[mine], other.starts[theirs]);
    const int64_t end = std::min(one.ends[mine], other.ends[theirs]);
    if (end > start) length += static_cast<uint64_t>(length_of(start, end));
    one.ends[mine] < other.ends[theirs] ? ++mine : ++theirs;
  }
  return static_cast<int64_t>(length);
}

Intervals difference_of(const IntervalColumns& from, const IntervalColumns& taken) {
  Intervals left;
  size_t next = 0;
  for (size_t place = 0; place < from.size(); ++place) {
    int64_t begin = from.starts[place];
    const int64_t end = from.ends[place];
    while (next < taken.size() && taken.ends[next] <= begin) ++next;
    for (size_t at = next; at < taken.size() && taken.starts[at] < end; ++at) {
      if (taken.starts[at] > begin) left.add(begin, taken.starts[at]);
      begin = std::max(begin, taken.ends[at]);
    }
    if (begin < end) left.add(begin, end);
  }
  return left;
}

std::vector<int64_t> covered_by_group(const IntervalColumns& intervals, const Column<int64_t>& groups,
                                      size_t num_groups) {
  std::vector<int64_t> covered(num_groups, 0);
  std::vector<std::pair<bool, int64_t>> reached(num_groups,
                                                {false, 0});  // whether the group has begun, and its last end
  for_each_by_start(intervals, [&](size_t row, int64_t start, int64_t end) {
    const int64_t group = groups[row];
    if (group < 0 || static_cast<size_t>(group) >= num_groups) throw std::out_of_range("no group has this number");
    auto& [has_begun, until] = reached[static_cast<size_t>(group)];
    const int64_t begin = has_begun ? std::max(start, until) : start;
    if (end > begin) covered[static_cast<size_t>(group)] += length_of(begin, end);
    until = has_begun ? std::max(until, end) : end;
    has_begun = true;
  });
  return covered;
}

Gaps gaps_between(const IntervalColumns& intervals, int64_t begin, int64_t end) {
  Gaps gaps;
  int64_t free_from = begin;
  for_each_by_start(intervals, [&](size_t row, int64_t start, int64_t until) {
    if (until < begin || start > end) return;
    if (start > free_from) {
      gaps.free.add(free_from, start);
      gaps.next.push_back(static_cast<int64_t>(row));
    }
    free_from = std::max(free_from, until);
  });
  if (free_from < end) {
    gaps.free.add(free_from, end);
    gaps.next.push_back(-1);
  }
  return gaps;
}

}  // namespace collector::analysis
