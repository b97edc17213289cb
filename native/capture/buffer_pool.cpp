#include "capture/buffer_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace collector::capture {
namespace {

// Bytes that are zeroed behind the end that CUPTI reports, because CUPTI may have begun to write a record there.
constexpr size_t kBehindEnd = 1024;

// The bytes up to the last word that is not 0, in a buffer that CUPTI may be writing to: this is a race on purpose, in
// which only whole words are compared with 0.
__attribute__((no_sanitize("thread"))) size_t used_bytes(const uint8_t* data, size_t num_bytes) {
  const auto* const words = reinterpret_cast<const uint64_t*>(data);
  size_t count = (num_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  while (count > 0 && __atomic_load_n(words + count - 1, __ATOMIC_RELAXED) == 0) --count;
  return count * sizeof(uint64_t);
}

// Returning the pages of a buffer must not take those of the next one, which CUPTI may be writing to.
size_t in_whole_pages(size_t num_bytes) {
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));  // 64 KiB on some aarch64 systems
  return (num_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

BufferPool::BufferPool(size_t buffer_bytes, uint32_t max_buffers)
    : buffer_bytes_(buffer_bytes),
      spacing_(in_whole_pages(buffer_bytes)),
      max_buffers_(max_buffers),
      reserved_bytes_(spacing_ * max_buffers + kScratchBytes * (kScratchBuffers + 1)),
      sessions_(std::make_unique<std::atomic<uint32_t>[]>(slots())),
      requests_(std::make_unique<std::atomic<uint64_t>[]>(max_buffers)),
      ready_(max_buffers),
      released_(max_buffers),
      free_scratch_(kScratchBuffers),
      completed_queue_(max_buffers) {
  // The memory is reserved, not committed: the kernel maps it, zeroed, as buffers are used.
  void* memory =
      ::mmap(nullptr, reserved_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<uint8_t*>(memory);
  for (uint32_t slot = 0; slot < slots(); ++slot) sessions_[slot].store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < std::min(kReady, max_buffers); ++i) map_one();
  for (uint32_t i = 0; i < kScratchBuffers; ++i) free_scratch_.push(i);
}

// A pool is never deleted while one of its buffers is out, because CUPTI may write to that buffer at any time.
BufferPool::~BufferPool() { ::munmap(base_, reserved_bytes_); }

bool BufferPool::take_unmapped(uint32_t& slot) noexcept {
  if (released_.pop(slot)) {
    released_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  uint32_t fresh = fresh_.load(std::memory_order_relaxed);
  do {
    if (fresh == max_buffers_) return false;
  } while (!fresh_.compare_exchange_weak(fresh, fresh + 1, std::memory_order_relaxed));
  slot = fresh;
  return true;
}

void BufferPool::map_one() noexcept {
  uint32_t slot;
  if (!take_unmapped(slot)) return;
  std::memset(buffer(slot), 0, buffer_bytes_);  // maps its pages
  ready_.push(slot);
  ready_count_.fetch_add(1, std::memory_order_relaxed);
}

uint8_t* BufferPool::acquire(uint32_t session) noexcept {
  const uint64_t request = requested_.fetch_add(1, std::memory_order_relaxed);
  uint32_t slot;
  if (ready_.pop(slot)) {
    ready_count_.fetch_sub(1, std::memory_order_relaxed);
  } else if (!take_unmapped(slot)) {  // unmapped memory is zero too, but its page faults happen here
    declined_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  requests_[slot].store(request, std::memory_order_relaxed);
  sessions_[slot].store(session, std::memory_order_release);
  return buffer(slot);
}

uint8_t* BufferPool::acquire_scratch(uint32_t session) noexcept {
  uint32_t index;
  if (free_scratch_.pop(index)) {
    sessions_[max_buffers_ + index].store(session, std::memory_order_release);
    return scratch(index);
  }
  // If all of them are out, callers share the last one: its contents are thrown away in any case.
  shared_scratch_session_.store(session, std::memory_order_relaxed);
  shared_scratch_out_.fetch_add(1, std::memory_order_release);
  return scratch(kScratchBuffers);
}

void BufferPool::complete(uint8_t* data, size_t valid) noexcept {
  const auto offset = static_cast<size_t>(data - base_);
  const size_t pooled_bytes = spacing_ * max_buffers_;
  if (offset < pooled_bytes) {
    const uint32_t slot = slot_of(data);
    if (data != buffer(slot)) return;
    // The buffer counts as out until it is taken from the queue. Otherwise a waiting thread could miss it in between.
    uint32_t session = sessions_[slot].load(std::memory_order_acquire);
    const bool is_out = session != 0 && (session & kReturned) == 0;
    if (!is_out || !sessions_[slot].compare_exchange_strong(session, session | kReturned)) return;
    completed_queue_.push({data, valid, session});
  } else {
    const auto index = static_cast<uint32_t>((offset - pooled_bytes) / kScratchBytes);
    if (data != scratch(index)) return;
    if (index < kScratchBuffers && sessions_[max_buffers_ + index].exchange(0, std::memory_order_acq_rel) == 0) return;
    discarded_bytes_.fetch_add(valid, std::memory_order_relaxed);
    std::memset(data, 0, kScratchBytes);
    if (index < kScratchBuffers) {
      free_scratch_.push(index);
    } else {
      shared_scratch_out_.fetch_sub(1, std::memory_order_release);
    }
  }
  completed_bytes_.fetch_add(valid, std::memory_order_relaxed);
  completed_.fetch_add(1, std::memory_order_release);
}

std::optional<CompletedBuffer> BufferPool::take_completed() noexcept {
  CompletedBuffer buffer;
  if (!completed_queue_.pop(buffer)) return std::nullopt;
  sessions_[slot_of(buffer.data)].store(0, std::memory_order_release);
  return buffer;
}

void BufferPool::recycle(const CompletedBuffer& done) noexcept {
  // CUPTI is promised zeroed buffers (attribute 5). Otherwise it would zero them itself, in the program's threads.
  std::memset(done.data, 0, std::min(done.valid + kBehindEnd, buffer_bytes_));
  ready_.push(slot_of(done.data));
  ready_count_.fetch_add(1, std::memory_order_relaxed);
}

void BufferPool::keep_ready() noexcept {
  if (ready_count_.load(std::memory_order_relaxed) < static_cast<int32_t>(kLowWater)) map_one();
}

void BufferPool::release_pages(uint32_t kept) noexcept {
  while (ready_count_.load(std::memory_order_relaxed) > static_cast<int32_t>(kept)) {
    uint32_t slot;
    if (!ready_.pop(slot)) return;
    ready_count_.fetch_sub(1, std::memory_order_relaxed);
    // If the system refuses, the buffer keeps its pages, which are already zero.
    ::madvise(buffer(slot), spacing_, MADV_DONTNEED);
    released_.push(slot);
    released_count_.fetch_add(1, std::memory_order_relaxed);
  }
}

void BufferPool::reset_counts() {
  requested_.store(0, std::memory_order_relaxed);
  completed_.store(0, std::memory_order_relaxed);
  declined_.store(0, std::memory_order_relaxed);
  completed_bytes_.store(0, std::memory_order_relaxed);
  discarded_bytes_.store(0, std::memory_order_relaxed);
}

int64_t BufferPool::outstanding(uint32_t session) const { return outstanding(session, UINT64_MAX); }

int64_t BufferPool::outstanding(uint32_t session, uint64_t requested) const {
  const uint32_t used = fresh_.load(std::memory_order_acquire);
  int64_t count = 0;
  for (uint32_t slot = 0; slot < slots(); ++slot) {
    if (slot == used) slot = max_buffers_;  // the slots in between were never handed out
    if (is_out(slot, session) && (slot >= max_buffers_ || requests_[slot].load(std::memory_order_relaxed) < requested))
      ++count;
  }
  if (shared_scratch_session_.load(std::memory_order_relaxed) == session) {
    count += shared_scratch_out_.load(std::memory_order_acquire);
  }
  return count;
}

std::vector<HeldBuffer> BufferPool::held(uint32_t session) const {
  const uint32_t used = fresh_.load(std::memory_order_acquire);
  std::vector<HeldBuffer> found;
  for (uint32_t slot = 0; slot < used; ++slot) {
    if (!is_out(slot, session)) continue;
    const HeldBuffer held{slot, session, requests_[slot].load(std::memory_order_relaxed),
                          used_bytes(buffer(slot), buffer_bytes_)};
    if (held.used_bytes > 0 && is_out(held)) found.push_back(held);
  }
  return found;
}

bool BufferPool::is_out(const HeldBuffer& buffer) const {
  return is_out(buffer.slot, buffer.session) &&
         requests_[buffer.slot].load(std::memory_order_relaxed) == buffer.request;
}

bool BufferPool::is_in_use() const noexcept {
  const auto* const begin = sessions_.get();
  return shared_scratch_out_.load(std::memory_order_acquire) != 0 ||
         std::any_of(begin, begin + slots(), [](const auto& session) { return session.load() != 0; });
}

uint64_t BufferPool::mapped_bytes() const {
  const int64_t used = int64_t{fresh_.load(std::memory_order_relaxed)};
  return static_cast<uint64_t>(used - released_count_.load(std::memory_order_relaxed)) * spacing_;
}

}  // namespace collector::capture
