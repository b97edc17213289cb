#include "stepstats/typed_activity.h"

#include <algorithm>
#include <string>
#include <utility>

namespace collector::stepstats {

void TypedActivity::read(std::string_view message) {
  values_.fill(0);
  WireReader reader(message, message);
  while (!reader.at_end()) {
    const uint32_t tag = reader.read_tag();
    if ((tag & 7) == kVarint && tag >> 3 < kFields) {
      values_[tag >> 3] = reader.read_int64();
    } else {
      reader.skip(tag);
    }
  }
}

TableKind kind_of(std::string_view activity) {
  const bool has_kind = activity.size() >= 2 && activity[0] == static_cast<char>(make_tag(1, kVarint));
  return has_kind ? static_cast<TableKind>(activity[1]) : TableKind::kUnknown;
}

void RepeatedActivities::add_all_streams(const StepStats& step, const Device& device, std::string_view unit) {
  TypedActivity activity;
  Part* part = nullptr;
  step.for_each_node(device, [&](const Node& node) {
    if (node.activity.empty()) return;
    activity.read(node.activity);
    const auto stream_id = static_cast<uint32_t>(activity[ActivityField::kStreamId]);
    const auto context_id = static_cast<uint32_t>(activity[ActivityField::kContextId]);
    const bool same = part != nullptr && part->stream_id == stream_id && part->context_id == context_id;
    if (!same) part = &part_of(unit, stream_id, context_id, false);
    part->activities.push_back(node.activity);
    if (activity.kind() == TableKind::kKernel) return;
    part_of(unit, 0, 0, true).activities.push_back(node.activity);
    part = nullptr;
  });
}

RepeatedActivities::Part& RepeatedActivities::part_of(std::string_view unit, uint32_t stream_id, uint32_t context_id,
                                                      bool is_copies) {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) {
    return part.stream_id == stream_id && part.context_id == context_id && part.is_copies == is_copies &&
           part.unit == unit;
  });
  if (found != parts_.end()) return *found;
  return parts_.emplace_back(Part{unit, stream_id, context_id, is_copies, {}});
}

std::vector<std::string_view> RepeatedActivities::take_stream(std::string_view unit, std::string_view stream) {
  // A stream number without a context means the stream of the lowest context; the other contexts' numbers follow a dot.
  Part* of_number = nullptr;
  for (Part& part : parts_) {
    if (part.is_copies || part.unit != unit) continue;
    const std::string number = std::to_string(part.stream_id);
    if (stream == number + "." + std::to_string(part.context_id)) return std::move(part.activities);
    if (stream == number && (of_number == nullptr || part.context_id < of_number->context_id)) of_number = &part;
  }
  return of_number == nullptr ? std::vector<std::string_view>() : std::move(of_number->activities);
}

std::vector<std::string_view> RepeatedActivities::take_copies(std::string_view unit) {
  for (Part& part : parts_) {
    if (part.is_copies && part.unit == unit) return std::move(part.activities);
  }
  return {};
}

}  // namespace collector::stepstats
