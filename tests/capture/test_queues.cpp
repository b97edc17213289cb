// The containers that CUPTI's callbacks touch: order, limits, and several threads at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
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
