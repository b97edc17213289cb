// The buffer pools of this process: the one that serves the open session, and those of earlier buffer options.
//
// CUPTI may complete a buffer long after its session, and ask for one at any time. So a buffer finds its pool by its
// address, and a pool is deleted only when none of its buffers is out and no callback is running.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/buffer_pool.h"

namespace collector::capture {

class BufferPools {
 public:
  // Held by a callback for as long as it uses a pool.
  class Use {
   public:
    explicit Use(BufferPools& pools) : pools_(pools) { pools_.users_.fetch_add(1); }
    ~Use() { pools_.users_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    BufferPool& current() const { return *pools_.current_.load(); }
    // The pool that a buffer is of; null: it is another client's.
    BufferPool* of(const uint8_t* data) const noexcept { return pools_.of(data); }

   private:
    BufferPools& pools_;
  };

  BufferPools() = default;
  ~BufferPools() = delete;  // a callback may be using one until the process ends
  BufferPools(const BufferPools&) = delete;
  BufferPools& operator=(const BufferPools&) = delete;

  // --- Called by one thread at a time, while no buffers are decoded. ---

  // Makes a pool of these buffers the current one, with its counts at 0. What the library gave back since the last
  // session is thrown away; returns how many buffers that were. Throws std::bad_alloc.
  uint64_t prepare(size_t buffer_bytes, uint32_t max_buffers);

  // Gives the memory of idle buffers back to the system, and deletes pools that no options asked for lately.
  void release_memory() noexcept;

  // --- Called by the decode thread as well. ---

  BufferPool* current() const { return current_.load(); }

  // Calls `visit(pool)` with every pool.
  template <typename Visit>
  void each(Visit visit) const {
    for (const auto& pool : pools_) {
      if (BufferPool* const found = pool.load()) visit(*found);
    }
  }

 private:
  // More than this only where the library holds buffers of as many different options.
  static constexpr size_t kMostPools = 64;

  BufferPool* of(const uint8_t* data) const noexcept;
  BufferPool* find(size_t buffer_bytes, uint32_t max_buffers) const;

  // Sequentially consistent throughout: whoever sees no users after taking a pool out can delete it.
  std::array<std::atomic<BufferPool*>, kMostPools> pools_{};
  std::atomic<BufferPool*> current_{nullptr};
  std::atomic<BufferPool*> previous_{nullptr};  // kept: a test runner and its tests take turns with their options
  std::atomic<int64_t> users_{0};
};

}  // namespace collector::capture
