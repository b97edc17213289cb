// Buffers of activity records: handed out zeroed, counted, taken back once, and distinguished by session and pool.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "capture/buffer_pool.h"
#include "capture/buffer_pools.h"

using collector::capture::BufferPool;
using collector::capture::BufferPools;

namespace {

constexpr size_t kBytes = 64 * 1024;

bool is_zero(const uint8_t* data, size_t num_bytes) {
  return std::all_of(data, data + num_bytes, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

TEST_CASE("a pool declines when all buffers are out") {
  BufferPool pool(kBytes, 2);
  CHECK(pool.acquire(1) != nullptr);
  CHECK(pool.acquire(1) != nullptr);
  CHECK(pool.acquire(1) == nullptr);
  CHECK(pool.requested() == 3);
  CHECK(pool.declined() == 1);
  CHECK(pool.outstanding(1) == 2);
  CHECK(pool.outstanding(2) == 0);
}

TEST_CASE("a buffer comes back zeroed, with the session that it was handed to") {
  BufferPool pool(kBytes, 1);
  uint8_t* const data = pool.acquire(7);
  REQUIRE(data != nullptr);
  CHECK(is_zero(data, kBytes));
  std::memset(data, 0xAB, 5000);
  pool.complete(data, 5000);
  CHECK(pool.outstanding(7) == 1);  // until the decode thread has it
  const auto done = pool.take_completed();
  REQUIRE(done.has_value());
  CHECK(done->data == data);
  CHECK(done->valid == 5000);
  CHECK(done->session == 7);
  CHECK(pool.outstanding(7) == 0);
  pool.recycle(*done);
  CHECK(pool.acquire(8) == data);
  CHECK(is_zero(data, kBytes));
}

TEST_CASE("what is no buffer that is out is not taken back") {
  BufferPool pool(kBytes, 2);
  uint8_t* const data = pool.acquire(1);
  pool.complete(data + 8, 100);
  CHECK_FALSE(pool.take_completed().has_value());
  pool.complete(data, 100);
  pool.complete(data, 100);
  CHECK(pool.completed() == 1);
  CHECK(pool.take_completed().has_value());
  CHECK_FALSE(pool.take_completed().has_value());
}

TEST_CASE("scratch buffers are distinct until all are out, and their contents are thrown away") {
  BufferPool pool(kBytes, 1);
  uint8_t* const first = pool.acquire_scratch(3);
  uint8_t* const second = pool.acquire_scratch(3);
  CHECK(first != second);
  CHECK(pool.contains(first));
  std::memset(first, 1, 48);
  pool.complete(first, 48);
  CHECK(pool.discarded_bytes() == 48);
  CHECK_FALSE(pool.take_completed().has_value());
  CHECK(is_zero(first, BufferPool::kScratchBytes));
  CHECK(pool.outstanding(3) == 1);
  for (int i = 0; i < 100; ++i) CHECK(pool.acquire_scratch(3) != nullptr);
  CHECK(pool.outstanding(3) == 101);
}

TEST_CASE("released pages are mapped again on request") {
  BufferPool pool(kBytes, 4);
  CHECK(pool.mapped_bytes() == 4 * kBytes);
  pool.release_pages(1);
  CHECK(pool.mapped_bytes() == kBytes);
  for (int i = 0; i < 4; ++i) CHECK(pool.acquire(1) != nullptr);
  CHECK(pool.mapped_bytes() == 4 * kBytes);
}

TEST_CASE("pools are kept per geometry, and found by the address of a buffer") {
  auto& pools = *new BufferPools;  // as in the product, never deleted
  CHECK(pools.prepare(kBytes, 2) == 0);
  BufferPool* const first = pools.current();
  uint8_t* const late = first->acquire(1);
  CHECK(pools.prepare(2 * kBytes, 2) == 0);
  BufferPool* const second = pools.current();
  CHECK(second != first);
  {
    const BufferPools::Use use(pools);
    CHECK(use.of(late) == first);
    CHECK(use.of(second->acquire(2)) == second);
    const uint8_t elsewhere = 0;
    CHECK(use.of(&elsewhere) == nullptr);
  }
  first->complete(late, 16);
  CHECK(pools.prepare(kBytes, 2) == 1);  // the late buffer, thrown away
  CHECK(pools.current() == first);
}

TEST_CASE("a pool whose buffers are out outlives sessions with other options") {
  auto& pools = *new BufferPools;
  pools.prepare(kBytes, 1);
  uint8_t* const held = pools.current()->acquire(1);
  for (uint32_t buffers = 2; buffers < 12; ++buffers) pools.prepare(kBytes, buffers);
  int count = 0;
  pools.each([&count](const BufferPool&) { ++count; });
  CHECK(count == 3);  // the current one, the one before it, and the one with the buffer
  const BufferPools::Use use(pools);
  REQUIRE(use.of(held) != nullptr);
  CHECK(use.of(held)->outstanding(1) == 1);
}
