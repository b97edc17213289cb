// What the simulated program has allocated on each device. There is nothing behind the addresses.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace collector::simulator {

inline constexpr uint64_t kDeviceBytes = uint64_t{80} << 30;

class DeviceMemory {
 public:
  // The address of new memory; 0 where the device has not so much left.
  uint64_t allocate(uint32_t device, uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t& used = used_[device];
    if (bytes == 0 || bytes > kDeviceBytes - used) return 0;
    used += bytes;
    const uint64_t address = next_;
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    blocks_[address] = {device, bytes};
    return address;
  }

  // False where nothing was allocated at the address.
  bool free(uint64_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) return false;
    used_[block->second.device] -= block->second.bytes;
    blocks_.erase(block);
    return true;
  }

  uint64_t used(uint32_t device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = used_.find(device);
    return found == used_.end() ? 0 : found->second;
  }

  // Whether anything was ever allocated on the device.
  bool touched(uint32_t device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return used_.count(device) != 0;
  }

 private:
  static constexpr uint64_t kAlignment = 512;

  struct Block {
    uint32_t device;
    uint64_t bytes;
  };

  std::mutex mutex_;
  uint64_t next_ = 0x7F00'0000'0000;
  std::map<uint64_t, Block> blocks_;
  std::map<uint32_t, uint64_t> used_;
};

}  // namespace collector::simulator
