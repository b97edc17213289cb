// The simulated program's allocations. There is no memory behind the addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "cupti/abi.h"
#include "threads/mutex.h"

namespace collector::simulator {

inline constexpr uint64_t kDeviceBytes = uint64_t{80} << 30;

// The pool of a device, from which stream-ordered calls allocate.
struct MemoryPool {
  uint64_t address = 0;
  uint64_t bytes = 0;  // taken from the device, in whole steps
  uint64_t used = 0;
};

struct MemoryBlock {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  cupti::MemoryKind kind = cupti::MemoryKind::kDevice;
  bool is_pooled = false;
  MemoryPool pool;  // the pool's state after the operation, if `is_pooled`
};

class AllocatedMemory {
 public:
  // Allocates memory; no value if the device lacks free memory. Pinned memory belongs to the host, which never lacks
  // memory.
  std::optional<MemoryBlock> allocate(uint32_t device, uint64_t bytes, cupti::MemoryKind kind, bool is_pooled) {
    const threads::MutexLock lock(mutex_);
    if (bytes == 0) return std::nullopt;
    if (kind != cupti::MemoryKind::kPinned) {
      uint64_t& used = used_[device];
      if (bytes > kDeviceBytes - used) return std::nullopt;
      used += bytes;
    }
    MemoryBlock block{next_, bytes, device, kind, is_pooled, {}};
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (is_pooled) {
      MemoryPool& pool = pools_[device];
      pool.address = 0x7E00'0000'0000 + (uint64_t{device} << 36);
      pool.used += bytes;
      pool.bytes = std::max(pool.bytes, in_steps(pool.used));
      block.pool = pool;
    }
    blocks_[block.address] = block;
    return block;
  }

  // Frees the block at the address and returns it; no value if there is none.
  std::optional<MemoryBlock> free(uint64_t address) {
    const threads::MutexLock lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return std::nullopt;
    MemoryBlock block = found->second;
    blocks_.erase(found);
    if (block.kind != cupti::MemoryKind::kPinned) used_[block.device] -= block.bytes;
    if (block.is_pooled) {
      block.pool = pools_[block.device];  // a release shows the use before it
      pools_[block.device].used -= block.bytes;
    }
    return block;
  }

  // Gives the unused memory of a device's pools back to the device, as a wait for the device does.
  void trim(uint32_t device) {
    const threads::MutexLock lock(mutex_);
    const auto pool = pools_.find(device);
    if (pool != pools_.end()) pool->second.bytes = in_steps(pool->second.used);
  }

  uint64_t used(uint32_t device) {
    const threads::MutexLock lock(mutex_);
    const auto found = used_.find(device);
    return found == used_.end() ? 0 : found->second;
  }

  // Whether anything was ever allocated on the device.
  bool touched(uint32_t device) {
    const threads::MutexLock lock(mutex_);
    return used_.count(device) != 0;
  }

 private:
  static constexpr uint64_t kAlignment = 512;
  static constexpr uint64_t kPoolStep = uint64_t{32} << 20;

  static uint64_t in_steps(uint64_t bytes) { return (bytes + kPoolStep - 1) / kPoolStep * kPoolStep; }

  threads::Mutex mutex_;
  uint64_t next_ GUARDED_BY(mutex_) = 0x7F00'0000'0000;
  std::map<uint64_t, MemoryBlock> blocks_ GUARDED_BY(mutex_);
  std::map<uint32_t, uint64_t> used_ GUARDED_BY(mutex_);
  std::map<uint32_t, MemoryPool> pools_ GUARDED_BY(mutex_);
};

}  // namespace collector::simulator
