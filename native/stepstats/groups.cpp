#include "stepstats/groups.h"

#include <algorithm>
#include <cstddef>

#include "stepstats/device_order.h"
#include "stepstats/name_table.h"
#include "stepstats/typed_activity.h"

namespace collector::stepstats {
namespace {

// Gives the nodes under streams and copies the activities that their twins under `stream:all` have.
void find_activities(const StepStats& step, std::vector<Group>& groups) {
  RepeatedActivities repeated;
  std::vector<DeviceName> names;
  names.reserve(step.devices().size());
  for (const Device& device : step.devices()) {
    names.push_back(parse_device_name(device.name));
    if (names.back().kind == DeviceKind::kAllStreams) repeated.add_all_streams(step, device, names.back().unit);
  }
  for (Group& group : groups) {
    if (group.name.kind == DeviceKind::kStream) {
      group.activities = repeated.take_stream(group.name.unit, group.name.stream);
    } else if (group.name.kind == DeviceKind::kCopies) {
      group.activities = repeated.take_copies(group.name.unit);
    }
    size_t num_nodes = 0;
    for (const Device* device : group.parts) num_nodes += device->num_nodes;
    if (group.activities.size() != num_nodes) group.activities = {};
  }
}

}  // namespace

std::vector<Group> make_groups(const StepStats& step, const std::function<bool(std::string_view)>& keep_device) {
  std::vector<Group> groups;
  NameTable names;
  for (const Device& device : step.devices()) {
    const auto [number, is_new] = names.insert(device.name);
    if (is_new) groups.emplace_back().device = device.name;
    groups[number].parts.push_back(&device);
  }
  NameTable prefixes;
  NameTable units_with_streams;
  NameTable units_with_copies;
  for (Group& group : groups) {
    group.name = parse_device_name(group.device);
    group.rank = prefixes.insert(group.name.prefix).number;
    size_t num_nodes = 0;
    for (const Device* device : group.parts) num_nodes += device->num_nodes;
    if (num_nodes == 0) continue;
    if (group.name.kind == DeviceKind::kStream) units_with_streams.insert(group.name.unit);
    if (group.name.kind == DeviceKind::kCopies) units_with_copies.insert(group.name.unit);
  }
  const auto has = [](const NameTable& units, const Group& group) {
    return units.find(group.name.unit) != NameTable::kNone;
  };
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [&](const Group& group) {
                                const bool repeats =
                                    group.name.kind == DeviceKind::kAllStreams && has(units_with_streams, group);
                                return repeats || (keep_device && !keep_device(group.device));
                              }),
               groups.end());
  // Calls come before the work that they launched; within a process, the order is that of its rows.
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.name.on_gpu != b.name.on_gpu ? b.name.on_gpu : comes_before(a.name, a.device, b.name, b.device);
  });
  find_activities(step, groups);
  uint64_t ordinal = 0;
  for (Group& group : groups) {
    group.first_ordinal = ordinal;
    for (const Device* device : group.parts) {
      ordinal += device->num_nodes;
      group.has_threads |= !device->thread_names.empty();
    }
    group.has_threads &= !group.name.on_gpu;
    const bool is_copies = group.name.kind == DeviceKind::kCopies;
    group.takes_arrows = group.name.on_gpu && !(is_copies && has(units_with_streams, group));
    group.counts_copies = group.name.on_gpu && (is_copies || !has(units_with_copies, group));
  }
  return groups;
}

}  // namespace collector::stepstats
