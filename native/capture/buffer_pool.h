// The memory that CUPTI writes records into: one reserved range, divided into equal buffers. They are handed out zeroed
// and mapped, come back with records, and are reused.
//
// Each buffer stores the session that it was handed out in until it comes back. CUPTI may return a buffer after its
// session has ended, or never; the stored session distinguishes such a buffer from those that a later session waits
// for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "capture/queues.h"

namespace collector::capture {

struct CompletedBuffer {
  uint8_t* data;
  size_t valid;
  uint32_t session;  // the session that handed it out
};

// A buffer that is out, and that has records.
struct HeldBuffer {
  uint32_t slot;
  uint32_t session;
  uint64_t request;     // the number of the request that it was handed out for
  uint64_t used_bytes;  // up to the last record at that time
};

class BufferPool {
 public:
  // `max_buffers` limits the memory. A few buffers are mapped and zeroed at once. Throws std::bad_alloc.
  BufferPool(size_t buffer_bytes, uint32_t max_buffers);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  size_t buffer_bytes() const { return buffer_bytes_; }
  uint32_t max_buffers() const { return max_buffers_; }
  bool contains(const uint8_t* data) const { return data >= base_ && data < base_ + reserved_bytes_; }

  // --- Called by CUPTI while it holds its lock: no allocation, no lock, no system call. ---

  // A zeroed buffer for this session (a number from 1 to 2^31 - 1), or null if all buffers are out.
  uint8_t* acquire(uint32_t session) noexcept;
  // A small zeroed buffer whose contents will be thrown away, for libraries that crash on a null buffer.
  uint8_t* acquire_scratch(uint32_t session) noexcept;
  static constexpr size_t kScratchBytes = 16 * 1024;
  // Takes a buffer back: a pooled buffer goes to the decode thread, a scratch buffer is at once free for the next
  // request. A pointer that is not the start of a buffer that is out is ignored.
  void complete(uint8_t* data, size_t valid) noexcept;

  // --- Called by the decode thread. ---

  std::optional<CompletedBuffer> take_completed() noexcept;
  // Zeroes the written part and makes the buffer ready again.
  void recycle(const CompletedBuffer& buffer) noexcept;
  // Maps another buffer when few are ready, so that a callback never causes a page fault.
  void keep_ready() noexcept;

  // --- Called between sessions. ---

  // Returns the pages of idle buffers to the system, except for `kept` buffers.
  void release_pages(uint32_t kept) noexcept;
  static constexpr uint32_t kReady = 4;  // ready buffers at the start of a session
  void reset_counts();

  // The number of buffers that this session handed out and the decode thread has not taken back. Such buffers belong to
  // CUPTI and are never freed.
  int64_t outstanding(uint32_t session) const;
  // The same of those among the first `requested` that were handed out since reset_counts.
  int64_t outstanding(uint32_t session, uint64_t requested) const;
  // The buffers of the session that are out and have records. The contents show which ones these are: CUPTI gets zeroed
  // memory, and does not touch it before it has a record. It may also hold a buffer without records for each thread.
  std::vector<HeldBuffer> held(uint32_t session) const;
  // Whether one of these buffers has not been taken back by the decode thread.
  bool is_out(const HeldBuffer& buffer) const;
  // Whether any buffer is out, in any session.
  bool is_in_use() const noexcept;
  uint64_t requested() const { return requested_.load(std::memory_order_relaxed); }
  uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  uint64_t declined() const { return declined_.load(std::memory_order_relaxed); }
  uint64_t completed_bytes() const { return completed_bytes_.load(std::memory_order_relaxed); }
  uint64_t discarded_bytes() const { return discarded_bytes_.load(std::memory_order_relaxed); }
  // Bytes of the buffers whose pages are mapped.
  uint64_t mapped_bytes() const;

 private:
  static constexpr uint32_t kReturned = 0x8000'0000;
  static constexpr uint32_t kScratchBuffers = 64;
  static constexpr uint32_t kLowWater = 2;  // within a session, another buffer is mapped when fewer are ready

  uint32_t slots() const { return max_buffers_ + kScratchBuffers; }
  uint8_t* buffer(uint32_t slot) const { return base_ + size_t{slot} * spacing_; }
  bool is_out(uint32_t slot, uint32_t session) const {
    return (sessions_[slot].load(std::memory_order_acquire) & ~kReturned) == session;
  }
  uint8_t* scratch(uint32_t index) const { return buffer(max_buffers_) + kScratchBytes * index; }
  uint32_t slot_of(const uint8_t* data) const {
    return static_cast<uint32_t>(static_cast<size_t>(data - base_) / spacing_);
  }
  bool take_unmapped(uint32_t& slot) noexcept;
  void map_one() noexcept;

  size_t buffer_bytes_;
  size_t spacing_;  // from one buffer to the next: whole pages
  uint32_t max_buffers_;
  size_t reserved_bytes_;
  uint8_t* base_;  // max_buffers_ buffers, then the scratch buffers, then the shared scratch buffer
  // By slot (buffers, then scratch buffers): the session that the buffer is out for, or 0 if it is not out. With
  // kReturned set, the buffer is back and waits for the decode thread.
  std::unique_ptr<std::atomic<uint32_t>[]> sessions_;
  std::unique_ptr<std::atomic<uint64_t>[]> requests_;  // by slot: the number of the request that it was handed out for
  IndexStack ready_;                                   // mapped and zeroed
  IndexStack released_;  // used before, pages returned to the system: zero when they are touched again
  IndexStack free_scratch_;
  BoundedQueue<CompletedBuffer> completed_queue_;  // each buffer is queued at most once, so the queue is never full
  std::atomic<uint32_t> fresh_{0};                 // buffers below this slot have been used
  std::atomic<int32_t> ready_count_{0};
  std::atomic<int32_t> released_count_{0};
  std::atomic<int64_t> shared_scratch_out_{0};  // how many times the shared scratch buffer is out
  std::atomic<uint32_t> shared_scratch_session_{0};
  std::atomic<uint64_t> requested_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> declined_{0};
  std::atomic<uint64_t> completed_bytes_{0};
  std::atomic<uint64_t> discarded_bytes_{0};
};

}  // namespace collector::capture
