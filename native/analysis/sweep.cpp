#include "analysis/sweep.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace collector::analysis {
namespace {

// Passes starts and ends in order of time to a visitor: `pass(from, to)` for the time between two of them, `enter(tag)`
// and `leave(tag)` for the interval that starts or ends. At the same moment an end comes before a start.
template <typename Visitor>
class Sweep {
 public:
  explicit Sweep(Visitor& visitor) : visitor_(visitor) {}

  // Starts must ascend.
  void add(int64_t start, int64_t end, uint64_t tag) {
    if (end <= start) return;
    leave_until(start);
    pass_to(start);
    visitor_.enter(tag);
    running_.emplace_back(end, tag);
    std::push_heap(running_.begin(), running_.end(), std::greater<>());
  }

  void finish() { leave_until(INT64_MAX); }

 private:
  using Running = std::pair<int64_t, uint64_t>;  // end, tag

  void leave_until(int64_t time) {
    while (!running_.empty() && running_.front().first <= time) {
      const auto [end, tag] = running_.front();
      pass_to(end);
      visitor_.leave(tag);
      std::pop_heap(running_.begin(), running_.end(), std::greater<>());
      running_.pop_back();
    }
  }

  void pass_to(int64_t time) {
    if (!running_.empty() && time > now_) visitor_.pass(now_, time);
    now_ = time;
  }

  Visitor& visitor_;
  std::vector<Running> running_;  // a heap, least end first
  int64_t now_ = 0;               // without meaning while nothing runs
};

// Times by the set of running classes, and by the number of running activities.
class ClassTimes {
 public:
  void enter(uint64_t tag) {
    ++number_;
    if (numbers_[tag]++ == 0) classes_ |= size_t{1} << tag;
  }
  void leave(uint64_t tag) {
    --number_;
    if (--numbers_[tag] == 0) classes_ &= ~(size_t{1} << tag);
  }
  void pass(int64_t from, int64_t to) {
    const int64_t length = length_of(from, to);
    busy_ += length;
    by_classes_[classes_] += length;
    if (by_number_.size() <= number_) by_number_.resize(number_ + 1);
    by_number_[number_] += length;
  }

  void write_to(DeviceTimes& times, int64_t window_length) {
    by_classes_[0] = window_length - busy_;
    if (by_number_.empty()) by_number_.resize(1);
    by_number_[0] = window_length - busy_;
    times.by_classes = by_classes_;
    times.by_number = std::move(by_number_);
  }

 private:
  size_t number_ = 0;
  size_t classes_ = 0;
  std::array<uint64_t, kMaxClasses> numbers_{};
  int64_t busy_ = 0;
  TimesByClasses by_classes_{};
  std::vector<int64_t> by_number_;
};

class TimesOfGroups {
 public:
  explicit TimesOfGroups(GroupTimes& times) : times_(times), numbers_(times.covered.size()), since_(numbers_.size()) {}

  void enter(uint64_t group) {
    if (numbers_[group]++ > 0) return;
    ++num_running_;
    sum_of_running_ += group;
    since_[group] = now_;
  }
  void leave(uint64_t group) {
    if (--numbers_[group] > 0) return;
    --num_running_;
    sum_of_running_ -= group;
    times_.covered[group] += now_ - since_[group];
  }
  void pass(int64_t from, int64_t to) {
    const int64_t length = length_of(from, to);
    now_ += length;
    if (num_running_ == 1) times_.alone[sum_of_running_] += length;
  }

 private:
  GroupTimes& times_;
  std::vector<uint64_t> numbers_;
  std::vector<int64_t> since_;
  uint64_t num_running_ = 0;
  uint64_t sum_of_running_ = 0;  // the number of the running group if one group runs
  int64_t now_ = 0;              // time so far in which anything ran, on which the time of a running group is measured
};

}  // namespace

std::vector<DeviceTimes> sweep_devices(const std::vector<ActivityColumns>& tables,
                                       const std::optional<std::pair<int64_t, int64_t>>& window) {
  std::vector<Times> starts;
  std::vector<Column<uint32_t>> device_columns;
  for (const ActivityColumns& table : tables) {
    starts.push_back(table.times.starts);
    device_columns.push_back(table.devices);
    for (size_t row = 0; row < table.classes.size; ++row) {
      if (table.classes[row] >= kMaxClasses) throw std::out_of_range("no class has this number");
    }
  }
  std::vector<DeviceTimes> devices;
  for (const auto& [device, runs] : runs_by_device(starts, device_columns)) {
    DeviceTimes& times = devices.emplace_back();
    times = {device, 0, INT64_MAX, INT64_MIN, {}, {}};
    ClassTimes visitor;
    Sweep<ClassTimes> sweep(visitor);
    RowsByStart rows(starts, runs);
    for (RowsByStart::Row row{}; rows.next(row);) {
      const ActivityColumns& table = tables[row.table];
      int64_t start = row.start;
      int64_t end = table.times.ends[row.row];
      ++times.num_activities;
      times.first_start = std::min(times.first_start, start);
      times.last_end = std::max(times.last_end, end);
      if (window) {
        start = std::clamp(start, window->first, window->second);
        end = std::clamp(end, window->first, window->second);
      }
      sweep.add(start, end, table.classes[row.row]);
    }
    sweep.finish();
    visitor.write_to(times,
                     window ? length_of(window->first, window->second) : length_of(times.first_start, times.last_end));
  }
  return devices;
}

GroupTimes sweep_groups(const IntervalColumns& intervals, const Column<int64_t>& groups, size_t num_groups) {
  GroupTimes times{std::vector<int64_t>(num_groups), std::vector<int64_t>(num_groups)};
  TimesOfGroups visitor(times);
  Sweep<TimesOfGroups> sweep(visitor);
  const std::vector<Times> tables{intervals.starts};
  const std::vector<Run> runs = ascending_runs(intervals.starts);
  RowsByStart rows(tables, runs);
  for (RowsByStart::Row row{}; rows.next(row);) {
    const int64_t group = groups[row.row];
    if (group < 0 || static_cast<size_t>(group) >= num_groups) throw std::out_of_range("no group has this number");
    sweep.add(row.start, intervals.ends[row.row], static_cast<uint64_t>(group));
  }
  sweep.finish();
  return times;
}

std::vector<int64_t> times_by_number(const IntervalColumns& intervals, int64_t begin, int64_t end) {
  const std::vector<uint32_t> devices(intervals.size());
  const std::vector<uint8_t> classes(intervals.size());
  std::vector<DeviceTimes> found = sweep_devices(
      {{intervals, {devices.data(), devices.size()}, {classes.data(), classes.size()}}}, std::pair{begin, end});
  if (found.empty()) return {length_of(begin, end)};
  return std::move(found.front().by_number);
}

}  // namespace collector::analysis
