// What was recorded of an activity, column by column, as its node has it beside name and label.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kinds/generated/activities.h"
#include "stepstats/step_stats.h"

namespace collector::convert {

// The columns of one activity; those that are not on the wire are 0.
class TypedActivity {
 public:
  // Reads an Activity message. Throws WireError.
  void read(std::string_view message);

  TableKind kind() const { return static_cast<TableKind>((*this)[ActivityField::kKind]); }
  int64_t operator[](ActivityField field) const { return values_[static_cast<uint32_t>(field)]; }
  // Of columns that follow each other, such as grid_x, grid_y and grid_z.
  int64_t at(ActivityField first, uint32_t place) const { return values_[static_cast<uint32_t>(first) + place]; }

 private:
  static constexpr uint32_t kFields = 64;  // what is beyond is of later versions
  std::array<int64_t, kFields> values_{};
};

// Whether it is neither a call or annotation of a host nor work of a GPU.
constexpr bool is_beside_calls(TableKind kind) {
  return kind == TableKind::kSynchronization || kind == TableKind::kOverhead || kind == TableKind::kMemoryOperation;
}

// The kind of an Activity message, which is its first field; unknown for one without.
TableKind kind_of(std::string_view activity);

// Of what a GPU did there is one node under `stream:all`, which has the activity, and one under each device that holds
// a part of it, which has not. The activities of the nodes of such a device, in their order; empty where they cannot
// be told.
class RepeatedActivities {
 public:
  // Reads the nodes of a device that holds all streams of the GPU `unit`. Throws WireError.
  void add_all_streams(const StepStats& step, const Device& device, std::string_view unit);

  // Of the device `unit`/stream:`stream`, or of the copies of `unit`; once.
  std::vector<std::string_view> take_stream(std::string_view unit, std::string_view stream);
  std::vector<std::string_view> take_copies(std::string_view unit);

 private:
  struct Part {
    std::string_view unit;
    uint32_t stream_id;
    uint32_t context_id;
    bool is_copies;
    std::vector<std::string_view> activities;
  };
  Part& part_of(std::string_view unit, uint32_t stream_id, uint32_t context_id, bool is_copies);

  std::vector<Part> parts_;
};

}  // namespace collector::convert
