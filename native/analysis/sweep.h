// Sweeps over the activities of devices: one pass that says how long which kinds of activity ran at once, and how many.
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

constexpr size_t kMaxClasses = 4;
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
  // How long, in the window, exactly these classes ran: bit c of the place stands for class c.
  TimesByClasses by_classes;
  // Time in the window during which this many activities ran at once.
  std::vector<int64_t> by_number;
};

// The times of each device, in order of the devices' numbers, cut to a window where there is one. Place 0 of the times
// is what the window, or the span of the device's activities, has left. Rows of a device that follow each other with
// ascending starts are not sorted.
std::vector<DeviceTimes> sweep_devices(const std::vector<ActivityColumns>& tables,
                                       const std::optional<std::pair<int64_t, int64_t>>& window);

struct GroupTimes {
  std::vector<int64_t> covered;  // of each group: how long at least one of its intervals ran
  std::vector<int64_t> alone;    // how long its intervals ran, and none of another group
};
GroupTimes sweep_groups(const IntervalColumns& intervals, const Column<int64_t>& groups, size_t num_groups);

// Time in a window during which this many of the intervals ran at once.
std::vector<int64_t> times_by_number(const IntervalColumns& intervals, int64_t begin, int64_t end);

}  // namespace collector::analysis
