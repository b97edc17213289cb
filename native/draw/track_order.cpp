#include "draw/track_order.h"

#include <algorithm>

#include "stepstats/device_order.h"
#include "stepstats/devices.h"
#include "stepstats/name_table.h"

namespace collector::draw {

using stepstats::DeviceName;
using stepstats::NameTable;

namespace {

constexpr uint32_t kFirstTid = 1'000'000;
constexpr uint32_t kRowsOfADevice = 1000;

struct OwnedDevice {
  uint32_t owner;  // index among the owners
  std::string_view device;
  DeviceName name;
};

}  // namespace

TrackOrder::TrackOrder(const std::vector<std::pair<std::string, std::string>>& owned_devices) {
  NameTable owners;
  std::vector<OwnedDevice> ordered;
  for (const auto& [owner, device] : owned_devices) {
    const auto [number, is_new] = owners.insert(owner);
    if (is_new) ordered.push_back({number, kMemory, stepstats::parse_device_name(kMemory)});
    ordered.push_back({number, device, stepstats::parse_device_name(device)});
  }
  std::sort(ordered.begin(), ordered.end(), [](const OwnedDevice& a, const OwnedDevice& b) {
    if (a.name.process_kind != b.name.process_kind) return a.name.process_kind < b.name.process_kind;
    return a.owner != b.owner ? a.owner < b.owner : comes_before(a.name, a.device, b.name, b.device);
  });
  uint32_t next_pid = 1;
  for (const OwnedDevice& each : ordered) {
    const auto [process, is_new] = pids_.try_emplace(Key(owners[each.owner], each.name.process), next_pid);
    if (is_new) ++next_pid;
  }
  next_tid_ = std::max(kFirstTid, next_pid);
  for (const OwnedDevice& each : ordered) {
    const Rows rows{next_tid_, next_tid_ + kRowsOfADevice};
    if (rows_.try_emplace(Key(owners[each.owner], each.device), rows).second) next_tid_ = rows.end;
  }
}

uint32_t TrackOrder::pid_of(std::string_view owner, std::string_view process) const {
  return pids_.at(Key(owner, process));
}

uint32_t TrackOrder::take_tid(std::string_view owner, std::string_view device) {
  Rows& rows = rows_.at(Key(owner, device));
  return rows.next < rows.end ? rows.next++ : next_tid_++;
}

}  // namespace collector::draw
