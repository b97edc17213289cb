#include "capture/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace collector::capture {
namespace {

// Zeroed behind the end that CUPTI states: a record may have been begun there.
constexpr size_t kBehindEnd = 1024;

}  // namespace

BufferPool::BufferPool(size_t buffer_bytes, uint32_t max_buffers, uint32_t ready)
    : buffer_bytes_(buffer_bytes),
      max_buffers_(max_buffers),
      reserved_bytes_(buffer_bytes * max_buffers + kScratchBytes * (kScratchBuffers + 1)),
      free_(max_buffers),
      free_scratch_(kScratchBuffers),
      completed_queue_(max_buffers) {
  // Reserved, not committed: memory is used as buffers are, and comes zeroed from the kernel.
  void* memory =
      ::mmap(nullptr, reserved_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<uint8_t*>(memory);
  for (uint32_t i = 0; i < std::min(ready, max_buffers); ++i) {
    uint32_t index;
    if (!take_fresh(index)) break;
    std::memset(buffer(index), 0, buffer_bytes_);  // maps its pages
    free_.push(index);
    ready_.fetch_add(1, std::memory_order_relaxed);
  }
  for (uint32_t i = 0; i < kScratchBuffers; ++i) free_scratch_.push(i);
}

BufferPool::~BufferPool() {
  // A buffer that CUPTI still holds may be written to at any time: then the range stays mapped.
  if (outstanding() == 0) ::munmap(base_, reserved_bytes_);
}

bool BufferPool::take_fresh(uint32_t& index) noexcept {
  uint32_t fresh = fresh_.load(std::memory_order_relaxed);
  do {
    if (fresh == max_buffers_) return false;
  } while (!fresh_.compare_exchange_weak(fresh, fresh + 1, std::memory_order_relaxed));
  index = fresh;
  return true;
}

uint8_t* BufferPool::acquire() noexcept {
  requested_.fetch_add(1, std::memory_order_relaxed);
  uint32_t index;
  if (free_.pop(index)) {
    ready_.fetch_sub(1, std::memory_order_relaxed);
  } else if (!take_fresh(index)) {  // a fresh one is zero too, but costs its page faults here
    declined_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  outstanding_.fetch_add(1, std::memory_order_acq_rel);
  return buffer(index);
}

uint8_t* BufferPool::acquire_scratch() noexcept {
  outstanding_.fetch_add(1, std::memory_order_acq_rel);
  uint32_t index;
  // With all of them out, the last one is shared: what is written there is thrown away in any case.
  return free_scratch_.pop(index) ? scratch(index) : scratch(kScratchBuffers);
}

void BufferPool::complete(uint8_t* data, size_t valid) noexcept {
  completed_bytes_.fetch_add(valid, std::memory_order_relaxed);
  if (is_scratch(data)) {
    discarded_bytes_.fetch_add(valid, std::memory_order_relaxed);
    std::memset(data, 0, kScratchBytes);
    const auto index = static_cast<uint32_t>(static_cast<size_t>(data - scratch(0)) / kScratchBytes);
    if (index < kScratchBuffers) free_scratch_.push(index);
  } else {
    completed_queue_.push({data, valid});
  }
  completed_.fetch_add(1, std::memory_order_release);
  outstanding_.fetch_sub(1, std::memory_order_acq_rel);
}

std::optional<CompletedBuffer> BufferPool::take_completed() noexcept {
  CompletedBuffer buffer;
  if (!completed_queue_.pop(buffer)) return std::nullopt;
  return buffer;
}

void BufferPool::recycle(const CompletedBuffer& done) noexcept {
  if (!is_pooled(done.data)) return;
  // We promise CUPTI zeroed buffers (attribute 5), or it would zero them itself in the program's threads.
  std::memset(done.data, 0, std::min(done.valid + kBehindEnd, buffer_bytes_));
  free_.push(static_cast<uint32_t>(static_cast<size_t>(done.data - base_) / buffer_bytes_));
  ready_.fetch_add(1, std::memory_order_relaxed);
}

void BufferPool::keep_ready() noexcept {
  while (ready_.load(std::memory_order_relaxed) < static_cast<int32_t>(kLowWater)) {
    uint32_t index;
    if (!take_fresh(index)) return;
    std::memset(buffer(index), 0, buffer_bytes_);
    free_.push(index);
    ready_.fetch_add(1, std::memory_order_relaxed);
  }
}

void BufferPool::reset_counts() {
  requested_.store(0, std::memory_order_relaxed);
  completed_.store(0, std::memory_order_relaxed);
  declined_.store(0, std::memory_order_relaxed);
  completed_bytes_.store(0, std::memory_order_relaxed);
  discarded_bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace collector::capture
