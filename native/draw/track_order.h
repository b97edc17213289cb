// Where a file shows what: the order of its processes, and of the rows inside each.
//
// Viewers order by the numbers of processes and rows, whatever else a file asks for, so the numbers say the order: GPUs
// come first and hosts last; a GPU's streams come by number, then what else belongs to it, then its copies. Rows of one
// device stay together, so every device has a thousand numbers; the rows beyond come after those of all devices.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepstats/devices.h"

namespace collector::convert {

// Less than 0, 0 or more than 0, as `a` comes before or after `b` for people: numbers by size, other text by bytes.
int compare_naturally(std::string_view a, std::string_view b);

// Whether a device is shown before another of the same owner; no two are equal.
bool comes_before(const DeviceName& a, std::string_view device_a, const DeviceName& b, std::string_view device_b);

class TrackOrder {
 public:
  // The process that holds what belongs to no device: the allocators' memory.
  static constexpr std::string_view kMemory = "memory";

  // Pairs of an owner (see MergeVisitor::start_step) and a device's name, in any order and as often as they come. The
  // processes of one kind are ordered by their owners, which come in the order of the list.
  explicit TrackOrder(const std::vector<std::pair<std::string, std::string>>& owned_devices);

  // Of an owner's process by its name as DeviceName has it. Throws std::out_of_range for one that the list lacks, as
  // take_tid does.
  uint32_t pid_of(std::string_view owner, std::string_view process) const;
  // The number of a device's next row.
  uint32_t take_tid(std::string_view owner, std::string_view device);

 private:
  using Key = std::pair<std::string, std::string>;

  struct Rows {
    uint32_t next;
    uint32_t end;
  };

  std::map<Key, uint32_t> pids_;
  std::map<Key, Rows> rows_;
  uint32_t next_tid_ = 0;  // of rows for which their device has no numbers left
};

}  // namespace collector::convert
