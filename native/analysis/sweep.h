// Sweeps over intervals: one pass determines the time of each combination of classes and of each number of intervals
// that run at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/intervals.h"
#include "analysis/rows_by_start.h"

namespace collector::analysis {

constexpr size_t kMaxClasses = 5;
using TimesByClasses = std::array<int64_t, size_t{1} << kMaxClasses>;

// Activities of one table.
struct ActivityColumns {
  IntervalColumns times;
  Column<uint32_t> devices;
  Column<uint8_t> classes;  // each below kMaxClasses
};

struct DeviceTimes {
  uint32_t device;
  uint64_t num_activities;
  int64_t first_start;
  int64_t last_end;
  // Time in the window in which exactly a set of classes ran, indexed by the set: bit c stands for class c.
  TimesByClasses by_classes;
  // Time in the window in which a number of activities ran at once, indexed by the number.
  std::vector<int64_t> by_number;
};

// The times of each device, in order of the devices' ordinals, cut to the window if there is one. Element 0 of the
// times is the idle time of the window, or of the span from the device's first start to its last end.
std::vector<DeviceTimes> sweep_devices(const std::vector<ActivityColumns>& tables,
                                       const std::optional<std::pair<int64_t, int64_t>>& window);

struct GroupTimes {
  std::vector<int64_t> covered;  // for each group the time in which at least one of its intervals ran
  std::vector<int64_t> alone;    // the part of this time in which no interval of another group ran
};
GroupTimes sweep_groups(const IntervalColumns& intervals, const Column<int64_t>& groups, size_t num_groups);

// Time in a window in which a number of the intervals ran at once, indexed by the number.
std::vector<int64_t> times_by_number(const IntervalColumns& intervals, int64_t begin, int64_t end);

}  // namespace collector::analysis
