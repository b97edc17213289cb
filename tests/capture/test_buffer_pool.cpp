// Buffers of activity records: handed out zeroed, counted, taken back once, and distinguished by session and pool.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "capture/buffer_pool.h"
#include "capture/buffer_pools.h"

using collector::capture::BufferPool;
using collector::capture::BufferPools;

namespace {

constexpr size_t kBytes = 64 * 1024;

bool is_zero(const uint8_t* data, size_t num_bytes) {
  return std::all_of(data, data + num_bytes, [](uint8_t byte) { return byte == 0; });
}

// The whole pages of a buffer that are in memory. A buffer begins with a page.
size_t resident_pages(uint8_t* data, size_t num_bytes) {
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(num_bytes / page_bytes);
  REQUIRE(::mincore(data, pages.size() * page_bytes, pages.data()) == 0);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
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

TEST_CASE("a record that CUPTI has begun behind the end of the others is zeroed, too") {
  BufferPool pool(kBytes, 1);
  uint8_t* const data = pool.acquire(1);
  std::memset(data, 0xAB, 5000 + 512);  // no record is longer
  pool.complete(data, 5000);
  pool.recycle(*pool.take_completed());
  CHECK(pool.acquire(1) == data);
  CHECK(is_zero(data, kBytes));
}

TEST_CASE("the buffers of earlier requests are told from later ones") {
  BufferPool pool(kBytes, 3);
  uint8_t* const first = pool.acquire(1);
  pool.acquire(1);
  const uint64_t requested = pool.requested();
  pool.acquire(1);
  CHECK(pool.outstanding(1, requested) == 2);
  CHECK(pool.outstanding(1) == 3);
  pool.complete(first, 8);
  pool.recycle(*pool.take_completed());
  CHECK(pool.outstanding(1, requested) == 1);
  CHECK(pool.acquire(1) == first);
  CHECK(pool.outstanding(1, requested) == 1);
}

TEST_CASE("released pages leave the memory of the process") {
  BufferPool pool(1 << 20, 2);
  uint8_t* const data = pool.acquire(1);
  CHECK(resident_pages(data, 1 << 20) > 0);
  pool.complete(data, 8);
  pool.recycle(*pool.take_completed());
  pool.release_pages(0);
  CHECK(pool.mapped_bytes() == 0);
  CHECK(resident_pages(data, 1 << 20) == 0);
}

TEST_CASE("pages that are returned are of no other buffer, whatever the size of buffers") {
  for (const size_t num_bytes : {size_t{4096}, size_t{4104}, size_t{70'000}}) {
    BufferPool pool(num_bytes, 3);
    std::vector<uint8_t*> out;
    while (uint8_t* const data = pool.acquire(1)) out.push_back(data);
    REQUIRE(out.size() == 3);
    for (uint8_t* const idle : out) {
      for (uint8_t* const data : out) std::memset(data, 0xAB, num_bytes);
      pool.complete(idle, num_bytes);
      pool.recycle(*pool.take_completed());
      pool.release_pages(0);
      for (const uint8_t* const data : out) {
        if (data == idle) continue;
        CHECK(std::count(data, data + num_bytes, 0xAB) == static_cast<std::ptrdiff_t>(num_bytes));
      }
      CHECK(pool.acquire(1) == idle);
      CHECK(is_zero(idle, num_bytes));
    }
  }
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

TEST_CASE("buffers with records are told from empty ones while they are out") {
  BufferPool pool(kBytes, 3);
  uint8_t* const empty = pool.acquire(5);
  uint8_t* const written = pool.acquire(5);
  uint8_t* const other = pool.acquire(6);
  written[100] = 1;
  other[100] = 1;
  const auto held = pool.held(5);
  REQUIRE(held.size() == 1);
  CHECK(held[0].used_bytes == 104);
  CHECK(held[0].request == 1);
  CHECK(pool.is_out(held[0]));
  written[kBytes - 1] = 1;
  CHECK(pool.held(5)[0].used_bytes == kBytes);
  CHECK(pool.held(6).size() == 1);
  pool.complete(written, kBytes);
  CHECK(pool.is_out(held[0]));  // until the decode thread has it
  pool.recycle(*pool.take_completed());
  CHECK_FALSE(pool.is_out(held[0]));
  CHECK(pool.acquire(5) == written);
  CHECK_FALSE(pool.is_out(held[0]));  // as another one
  empty[0] = 1;
  CHECK(pool.held(5).size() == 1);
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
  static auto& pools = *new BufferPools;  // as in the product, never deleted
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
  static auto& pools = *new BufferPools;
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

TEST_CASE("threads that fill buffers and one that reads them lose none and mix none") {
  constexpr uint32_t kBuffers = 6;
  constexpr size_t kSmall = 4096;
  constexpr int kThreads = 4;
  BufferPool pool(kSmall, kBuffers);
  std::atomic<uint64_t> filled{0};
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&pool, &filled, &running, thread] {
      for (int round = 0; round < 3000; ++round) {
        if (uint8_t* const data = pool.acquire(1)) {
          std::memset(data, thread + 1, kSmall);
          pool.complete(data, kSmall);
          filled.fetch_add(1, std::memory_order_relaxed);
        } else if (uint8_t* const scratch = pool.acquire_scratch(1)) {
          pool.complete(scratch, 8);
        }
      }
      --running;
    });
  }
  uint64_t read = 0;
  uint64_t mixed = 0;
  for (bool is_last = false; !is_last;) {
    is_last = running.load() == 0;
    while (const auto done = pool.take_completed()) {
      const uint8_t* const data = done->data;
      mixed += data[0] == 0 || std::count(data, data + kSmall, data[0]) != static_cast<std::ptrdiff_t>(kSmall);
      pool.recycle(*done);
      pool.keep_ready();
      ++read;
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(read == filled);
  CHECK(mixed == 0);
  CHECK(pool.outstanding(1) == 0);
  for (uint32_t i = 0; i < kBuffers; ++i) CHECK(pool.acquire(2) != nullptr);
}
