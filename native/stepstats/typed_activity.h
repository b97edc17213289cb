// The recorded columns of an activity, which its node contains in addition to name and label.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "kinds/generated/activities.h"
#include "stepstats/step_stats.h"

namespace collector::stepstats {

// The columns of one activity; absent columns are 0.
class TypedActivity {
 public:
  // Reads an Activity message. Throws WireError.
  void read(std::string_view message);

  TableKind kind() const { return static_cast<TableKind>((*this)[ActivityField::kKind]); }
  int64_t operator[](ActivityField field) const { return values_[static_cast<uint32_t>(field)]; }
  // For consecutive columns, such as grid_x, grid_y and grid_z.
  int64_t at(ActivityField first, uint32_t place) const { return values_[static_cast<uint32_t>(first) + place]; }

 private:
  std::array<int64_t, kNumActivityFields> values_{};
};

// Whether a kernel's launch shape and registers are known: files of other programs may state none.
inline bool has_launch_shape(const TypedActivity& kernel) {
  for (uint32_t place = 0; place < 3; ++place) {
    if (kernel.at(ActivityField::kGridX, place) != 0 || kernel.at(ActivityField::kBlockX, place) != 0) return true;
  }
  return kernel[ActivityField::kRegistersPerThread] != 0;
}

// The side table of that kind; null if the table is none.
constexpr const SideTable* side_table_of(TableKind kind) {
  for (const SideTable& table : kSideTables) {
    if (table.kind == kind) return &table;
  }
  return nullptr;
}

// Whether the table holds neither calls or annotations of a host nor GPU work.
constexpr bool is_beside_calls(TableKind kind) {
  return kind == TableKind::kGraphLaunch || kind == TableKind::kOtherRange || side_table_of(kind) != nullptr;
}

// The kind of an Activity message, its first field; unknown if that is absent.
TableKind kind_of(std::string_view activity);

// Each piece of GPU work has one node under `stream:all`, with the activity, and one node without it under each device
// that holds a part of the work. This class finds the activities for the nodes of such a device, in their order; the
// result is empty if they cannot be matched.
class RepeatedActivities {
 public:
  // Reads the nodes of the device with all streams of the GPU `unit`. Throws WireError.
  void add_all_streams(const StepStats& step, const Device& device, std::string_view unit);

  // The activities of the device `unit`/stream:`stream`, or of the copies of `unit`. May be called once per device.
  std::vector<std::string_view> take_stream(std::string_view unit, std::string_view stream);
  std::vector<std::string_view> take_copies(std::string_view unit);

 private:
  using Activities = std::vector<std::string_view>;

  std::map<std::tuple<std::string_view, uint32_t, uint32_t>, Activities> streams_;  // by unit, stream and context
  std::map<std::string_view, Activities> copies_;                                   // by unit
};

}  // namespace collector::stepstats
