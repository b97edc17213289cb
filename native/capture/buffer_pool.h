// The memory that CUPTI writes records into: one reserved range, cut into equal buffers that are handed out zeroed
// and already mapped, come back full, and go round again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "capture/queues.h"

namespace collector::capture {

struct CompletedBuffer {
  uint8_t* data;
  size_t valid;
};

class BufferPool {
 public:
  // `max_buffers` bounds the memory; `ready` of them are mapped and zeroed at once. Throws std::bad_alloc.
  BufferPool(size_t buffer_bytes, uint32_t max_buffers, uint32_t ready);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  size_t buffer_bytes() const { return buffer_bytes_; }
  uint32_t max_buffers() const { return max_buffers_; }

  // --- Called by CUPTI, with its lock held: no allocation, no lock, no system call. ---

  // A zeroed buffer, or null when all are out.
  uint8_t* acquire() noexcept;
  // A small zeroed buffer whose contents will be thrown away, for libraries that crash on null.
  uint8_t* acquire_scratch() noexcept;
  static constexpr size_t kScratchBytes = 16 * 1024;
  // Takes a buffer back: a pooled one for the decode thread, a scratch one at once for the next request.
  void complete(uint8_t* data, size_t valid) noexcept;

  // --- Called by the decode thread. ---

  std::optional<CompletedBuffer> take_completed() noexcept;
  // Zeroes what was written and makes the buffer ready again. Memory that is not ours is ignored.
  void recycle(const CompletedBuffer& buffer) noexcept;
  // Maps another buffer when few are ready, so that no callback ever meets a page fault.
  void keep_ready() noexcept;

  // Handed out and not completed. Such buffers are CUPTI's: they are never freed.
  int64_t outstanding() const { return outstanding_.load(std::memory_order_acquire); }
  uint64_t requested() const { return requested_.load(std::memory_order_relaxed); }
  uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  uint64_t declined() const { return declined_.load(std::memory_order_relaxed); }
  uint64_t completed_bytes() const { return completed_bytes_.load(std::memory_order_relaxed); }
  uint64_t discarded_bytes() const { return discarded_bytes_.load(std::memory_order_relaxed); }
  uint64_t mapped_bytes() const { return uint64_t{fresh_.load(std::memory_order_relaxed)} * buffer_bytes_; }
  void reset_counts();

 private:
  static constexpr uint32_t kScratchBuffers = 64;
  static constexpr uint32_t kLowWater = 2;

  uint8_t* buffer(uint32_t index) const { return base_ + size_t{index} * buffer_bytes_; }
  uint8_t* scratch(uint32_t index) const { return buffer(max_buffers_) + kScratchBytes * index; }
  bool is_pooled(const uint8_t* data) const { return data >= base_ && data < buffer(max_buffers_); }
  bool is_scratch(const uint8_t* data) const { return data >= scratch(0) && data <= scratch(kScratchBuffers); }
  bool take_fresh(uint32_t& index) noexcept;

  size_t buffer_bytes_;
  uint32_t max_buffers_;
  uint8_t* base_;  // max_buffers_ buffers, then the scratch ones, then one that may be out several times
  size_t reserved_bytes_;
  IndexStack free_;
  IndexStack free_scratch_;
  BoundedQueue<CompletedBuffer> completed_queue_;
  std::atomic<uint32_t> fresh_{0};  // buffers below this index have been used or are ready
  std::atomic<int32_t> ready_{0};
  std::atomic<int64_t> outstanding_{0};
  std::atomic<uint64_t> requested_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> declined_{0};
  std::atomic<uint64_t> completed_bytes_{0};
  std::atomic<uint64_t> discarded_bytes_{0};
};

}  // namespace collector::capture
