#include "analysis/rows_by_start.h"

#include <algorithm>

namespace collector::analysis {
namespace {

// With more than kFewRuns runs of fewer rows than this, sorting costs less than a merge, whose heap exceeds the caches.
constexpr size_t kRowsOfRun = 16;
constexpr size_t kFewRuns = 64;

}  // namespace

RowsByStart::RowsByStart(const std::vector<Times>& starts, const std::vector<Run>& runs)
    : starts_(starts), runs_(runs) {
  size_t rows = 0;
  for (const Run& run : runs) rows += run.end - run.begin;
  if (runs.size() > kFewRuns && rows / runs.size() < kRowsOfRun) {
    sorted_.reserve(rows);
    sort_rows();
    return;
  }
  heads_.reserve(runs.size());
  for (size_t place = 0; place < runs.size(); ++place) {
    const Run& run = runs[place];
    if (run.begin < run.end) heads_.push_back({starts[run.table][run.begin], place, run.begin});
  }
  for (size_t place = heads_.size() / 2; place > 0; --place) sift_down(place - 1);
}

bool RowsByStart::next(Row& row) {
  if (!sorted_.empty()) {
    if (next_sorted_ == sorted_.size()) return false;
    row = sorted_[next_sorted_++];
    return true;
  }
  if (heads_.empty()) return false;
  Head& head = heads_.front();
  const Run& run = runs_[head.run];
  row = {run.table, head.row, head.start};
  if (++head.row < run.end) {
    head.start = starts_[run.table][head.row];
  } else {
    head = heads_.back();
    heads_.pop_back();
  }
  sift_down(0);
  return true;
}

void RowsByStart::sort_rows() {
  for (const Run& run : runs_) {
    for (size_t row = run.begin; row < run.end; ++row) sorted_.push_back({run.table, row, starts_[run.table][row]});
  }
  std::stable_sort(sorted_.begin(), sorted_.end(), [](const Row& a, const Row& b) { return a.start < b.start; });
}

void RowsByStart::sift_down(size_t place) {
  const size_t size = heads_.size();
  if (place >= size) return;
  const Head moved = heads_[place];
  for (size_t child = 2 * place + 1; child < size; child = 2 * place + 1) {
    if (child + 1 < size && heads_[child + 1] < heads_[child]) ++child;
    if (!(heads_[child] < moved)) break;
    heads_[place] = heads_[child];
    place = child;
  }
  heads_[place] = moved;
}

std::vector<Run> ascending_runs(const Times& starts) {
  std::vector<Run> runs;
  for (size_t row = 0; row < starts.size; ++row) {
    if (row == 0 || starts[row] < starts[row - 1]) runs.push_back({0, row, row});
    runs.back().end = row + 1;
  }
  return runs;
}

std::map<uint32_t, std::vector<Run>> runs_by_device(const std::vector<Times>& starts,
                                                    const std::vector<Column<uint32_t>>& devices) {
  std::map<uint32_t, std::vector<Run>> runs;
  for (size_t table = 0; table < starts.size(); ++table) {
    const Times& own_starts = starts[table];
    const Column<uint32_t>& own_devices = devices[table];
    for (size_t begin = 0; begin < own_starts.size;) {
      size_t end = begin + 1;
      while (end < own_starts.size && own_devices[end] == own_devices[begin] &&
             own_starts[end] >= own_starts[end - 1]) {
        ++end;
      }
      runs[own_devices[begin]].push_back({static_cast<uint32_t>(table), begin, end});
      begin = end;
    }
  }
  return runs;
}

std::vector<int64_t> order_by_device_and_start(const std::vector<Times>& starts,
                                               const std::vector<Column<uint32_t>>& devices) {
  std::vector<size_t> first_places{0};
  for (const Times& table : starts) first_places.push_back(first_places.back() + table.size);
  std::vector<int64_t> order;
  order.reserve(first_places.back());
  for (const auto& [device, runs] : runs_by_device(starts, devices)) {
    RowsByStart rows(starts, runs);
    for (RowsByStart::Row row{}; rows.next(row);) {
      order.push_back(static_cast<int64_t>(first_places[row.table] + row.row));
    }
  }
  return order;
}

}  // namespace collector::analysis
