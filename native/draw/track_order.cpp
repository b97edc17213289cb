#include "draw/track_order.h"

#include <algorithm>

#include "stepstats/name_table.h"

namespace collector::convert {
namespace {

constexpr uint32_t kFirstTid = 1'000'000;
constexpr uint32_t kRowsOfADevice = 1000;

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Removes the leading digits of a text and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_digit);
  std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

struct OwnedDevice {
  uint32_t owner;  // index among the owners
  std::string_view device;
  DeviceName name;
};

}  // namespace

int compare_naturally(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const bool number_in_both = is_digit(a.front()) && is_digit(b.front());
    if (number_in_both) {
      const std::string_view left = take_number(a);
      const std::string_view right = take_number(b);
      if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
      if (const int order = left.compare(right); order != 0) return order;
    } else {
      if (is_digit(a.front()) != is_digit(b.front())) return is_digit(a.front()) ? -1 : 1;
      if (a.front() != b.front())
        return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() == b.empty() ? 0 : a.empty() ? -1 : 1;
}

bool comes_before(const DeviceName& a, std::string_view device_a, const DeviceName& b, std::string_view device_b) {
  if (a.process_kind != b.process_kind) return a.process_kind < b.process_kind;
  if (const int order = compare_naturally(a.process, b.process); order != 0) return order < 0;
  if (a.process != b.process) return a.process < b.process;
  if (a.kind != b.kind) return a.kind < b.kind;
  if (const int order = compare_naturally(a.track, b.track); order != 0) return order < 0;
  return device_a < device_b;
}

TrackOrder::TrackOrder(const std::vector<std::pair<std::string, std::string>>& owned_devices) {
  NameTable owners;
  std::vector<OwnedDevice> ordered;
  for (const auto& [owner, device] : owned_devices) {
    const auto [number, is_new] = owners.insert(owner);
    if (is_new) ordered.push_back({number, kMemory, parse_device_name(kMemory)});
    ordered.push_back({number, device, parse_device_name(device)});
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

}  // namespace collector::convert
