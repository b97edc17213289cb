// The order of a file's processes, and of the rows inside each process.
//
// Viewers order processes and rows by their numbers, regardless of other requests in the file, so the order is encoded
// in the numbers. GPUs come first and hosts last. A GPU's streams come by number, followed by its other devices and its
// copies. Rows of one device stay together: every device has a thousand numbers, and additional rows come after those
// of all devices.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collector::draw {

class TrackOrder {
 public:
  // The process of tracks that belong to no device: the allocators' memory.
  static constexpr std::string_view kMemory = "memory";

  // Pairs of an owner (see MergeVisitor::start_step) and a device's name, in any order and with repetitions. Processes
  // of one kind are ordered by their owners, in the owners' order in the list.
  explicit TrackOrder(const std::vector<std::pair<std::string, std::string>>& owned_devices);

  // The pid of an owner's process, by DeviceName's process name. Like take_tid, throws std::out_of_range if the list
  // does not contain it.
  uint32_t pid_of(std::string_view owner, std::string_view process) const;
  // The number of the next row of a device.
  uint32_t take_tid(std::string_view owner, std::string_view device);

 private:
  using Key = std::pair<std::string, std::string>;

  struct Rows {
    uint32_t next;
    uint32_t end;
  };

  std::map<Key, uint32_t> pids_;
  std::map<Key, Rows> rows_;
  uint32_t next_tid_ = 0;  // for rows of devices without free numbers
};

}  // namespace collector::draw
