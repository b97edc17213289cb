// The containers that CUPTI's callbacks touch: order, limits, and several threads at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "capture/queues.h"

using collector::capture::BoundedQueue;
using collector::capture::IndexStack;

TEST_CASE("a stack returns the last index first") {
  IndexStack stack(3);
  for (const uint32_t index : {2u, 0u, 1u}) stack.push(index);
  uint32_t index = 9;
  for (const uint32_t expected : {1u, 0u, 2u}) {
    REQUIRE(stack.pop(index));
    CHECK(index == expected);
  }
  CHECK_FALSE(stack.pop(index));
}

TEST_CASE("an index of a stack is never out twice") {
  constexpr uint32_t kIndices = 4;
  constexpr int kRounds = 20'000;
  IndexStack stack(kIndices);
  for (uint32_t index = 0; index < kIndices; ++index) stack.push(index);
  std::vector<std::atomic<int>> holders(kIndices);
  std::atomic<int> seen_twice{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        uint32_t index;
        if (!stack.pop(index)) continue;
        if (holders[index].fetch_add(1) != 0) ++seen_twice;
        holders[index].fetch_sub(1);
        stack.push(index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(seen_twice == 0);
  std::vector<uint32_t> left;
  for (uint32_t index; stack.pop(index);) left.push_back(index);
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<uint32_t>{0, 1, 2, 3});
}

TEST_CASE("what a thread wrote before a push is seen after the pop") {
  // Plain memory, which ThreadSanitizer would report if the orders of the stack alone did not hand it over.
  constexpr uint32_t kIndices = 3;
  IndexStack stack(kIndices);
  std::vector<uint64_t> owned(kIndices, 0);
  for (uint32_t index = 0; index < kIndices; ++index) stack.push(index);
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        uint32_t index;
        if (!stack.pop(index)) continue;
        ++owned[index];
        taken.fetch_add(1, std::memory_order_relaxed);
        stack.push(index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::accumulate(owned.begin(), owned.end(), uint64_t{0}) == taken);
}

TEST_CASE("a queue is never full for as many items as it has room for") {
  // Items go round as buffers do: a producer takes one from the stack and queues it, the consumer puts it back.
  constexpr uint32_t kItems = 4;
  IndexStack ready(kItems);
  BoundedQueue<uint32_t> done(kItems);
  std::vector<uint64_t> items(kItems, 0);
  for (uint32_t item = 0; item < kItems; ++item) ready.push(item);
  std::atomic<bool> is_ended{false};
  std::atomic<int> refused{0};
  std::atomic<uint64_t> passed{0};
  std::thread consumer([&] {
    for (bool is_last = false; !is_last;) {
      is_last = is_ended.load();
      uint32_t item;
      while (done.pop(item)) {
        ++items[item];  // plain memory: the queue and the stack hand it over
        ready.push(item);
      }
    }
  });
  std::vector<std::thread> producers;
  for (int thread = 0; thread < 3; ++thread) {
    producers.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        uint32_t item;
        if (!ready.pop(item)) continue;
        ++items[item];
        passed.fetch_add(1, std::memory_order_relaxed);
        if (!done.push(item)) ++refused;
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  is_ended = true;
  consumer.join();
  CHECK(refused == 0);
  CHECK(std::accumulate(items.begin(), items.end(), uint64_t{0}) == 2 * passed);
}

TEST_CASE("a queue returns the first value first, and refuses what has no room") {
  BoundedQueue<int> queue(3);  // has room for the next power of two
  for (int round = 0; round < 5; ++round) {
    for (int value = 0; value < 4; ++value) CHECK(queue.push(value));
    CHECK_FALSE(queue.push(4));
    int value = -1;
    for (int expected = 0; expected < 4; ++expected) {
      REQUIRE(queue.pop(value));
      CHECK(value == expected);
    }
    CHECK_FALSE(queue.pop(value));
  }
}

TEST_CASE("a queue hands over every value once, in the order of its producer") {
  constexpr uint32_t kProducers = 3;
  constexpr uint32_t kValues = 10'000;
  BoundedQueue<uint32_t> queue(64);
  std::vector<std::thread> producers;
  for (uint32_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&queue, producer] {
      for (uint32_t i = 0; i < kValues; ++i) {
        while (!queue.push(producer * kValues + i)) std::this_thread::yield();
      }
    });
  }
  std::vector<uint32_t> next(kProducers, 0);
  bool in_order = true;
  for (uint32_t taken = 0; taken < kProducers * kValues;) {
    uint32_t value;
    if (!queue.pop(value)) {
      std::this_thread::yield();
      continue;
    }
    in_order = in_order && value % kValues == next[value / kValues];
    ++next[value / kValues];
    ++taken;
  }
  for (std::thread& producer : producers) producer.join();
  CHECK(in_order);
  CHECK(next == std::vector<uint32_t>(kProducers, kValues));
}
