#include "capture/buffer_pools.h"

#include <algorithm>
#include <memory>

namespace collector::capture {

BufferPool* BufferPools::of(const uint8_t* data) const noexcept {
  for (const auto& pool : pools_) {
    BufferPool* const found = pool.load();
    if (found != nullptr && found->contains(data)) return found;
  }
  return nullptr;
}

BufferPool* BufferPools::find(size_t buffer_bytes, uint32_t max_buffers) const {
  for (const auto& pool : pools_) {
    BufferPool* const found = pool.load();
    if (found != nullptr && found->buffer_bytes() == buffer_bytes && found->max_buffers() == max_buffers) return found;
  }
  return nullptr;
}

uint64_t BufferPools::prepare(size_t buffer_bytes, uint32_t max_buffers) {
  BufferPool* pool = find(buffer_bytes, max_buffers);
  if (pool == nullptr) {
    auto* const free =
        std::find_if(pools_.begin(), pools_.end(), [](const auto& each) { return each.load() == nullptr; });
    if (free == pools_.end()) {
      // Every pool has buffers out; another pool that stays mapped for good would not help.
      pool = current();
    } else {
      pool = new BufferPool(buffer_bytes, max_buffers);
      free->store(pool);
    }
  }
  if (pool != current()) {
    previous_.store(current());
    current_.store(pool);
    release_memory();
  }
  uint64_t late = 0;
  each([&late](BufferPool& owner) {
    while (const auto buffer = owner.take_completed()) {
      owner.recycle(*buffer);
      ++late;
    }
    owner.reset_counts();
  });
  return late;
}

void BufferPools::release_memory() noexcept {
  for (auto& place : pools_) {
    BufferPool* const pool = place.load();
    if (pool == nullptr) continue;
    const bool is_kept = pool == current() || pool == previous_.load();
    pool->release_pages(is_kept ? BufferPool::kReady : 0);
    if (is_kept || pool->is_in_use()) continue;
    place.store(nullptr);
    if (users_.load() == 0) {
      delete pool;
    } else {
      // A callback may have found the pool before it was taken out; the next session tries again.
      place.store(pool);
    }
  }
}

}  // namespace collector::capture
