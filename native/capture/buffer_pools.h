// The buffer pools of this process: the pool of the open session, and pools of earlier buffer options.
//
// CUPTI may complete a buffer long after its session, and may request one at any time. A buffer's pool is therefore
// found by the buffer's address, and a pool is deleted only when none of its buffers is out and no callback is running.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/buffer_pool.h"

namespace collector::capture {

class BufferPools {
 public:
  // A callback holds this for as long as it uses a pool.
  class Use {
   public:
    explicit Use(BufferPools& pools) : pools_(pools) { pools_.users_.fetch_add(1); }
    ~Use() { pools_.users_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    BufferPool& current() const { return *pools_.current_.load(); }
    // The pool of a buffer, or null if the buffer belongs to another CUPTI client.
    BufferPool* of(const uint8_t* data) const noexcept { return pools_.of(data); }

   private:
    BufferPools& pools_;
  };

  BufferPools() = default;
  ~BufferPools() = delete;  // a callback may use one until the process ends
  BufferPools(const BufferPools&) = delete;
  BufferPools& operator=(const BufferPools&) = delete;

  // --- Called by one thread at a time, while no buffers are decoded. ---

  // Makes the pool with these options the current one and resets its counts. Buffers that the library returned since
  // the last session are thrown away; the result is their number. Throws std::bad_alloc.
  uint64_t prepare(size_t buffer_bytes, uint32_t max_buffers);

  // Returns the memory of idle buffers to the system, and deletes pools whose options were not used lately.
  void release_memory() noexcept;

  // --- Also called by the decode thread. ---

  BufferPool* current() const { return current_.load(); }

  // Calls `visit(pool)` for every pool.
  template <typename Visit>
  void each(Visit visit) const {
    for (const auto& pool : pools_) {
      if (BufferPool* const found = pool.load()) visit(*found);
    }
  }

 private:
  // Exceeded only if the library holds buffers of this many different options.
  static constexpr size_t kMostPools = 64;

  BufferPool* of(const uint8_t* data) const noexcept;
  BufferPool* find(size_t buffer_bytes, uint32_t max_buffers) const;

  // Sequentially consistent throughout: a thread that takes a pool out and then sees no users can delete it.
  std::array<std::atomic<BufferPool*>, kMostPools> pools_{};
  std::atomic<BufferPool*> current_{nullptr};
  std::atomic<BufferPool*> previous_{nullptr};  // kept: a test runner and its tests alternate their options
  std::atomic<int64_t> users_{0};
};

}  // namespace collector::capture
