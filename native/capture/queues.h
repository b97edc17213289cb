// The two containers that CUPTI's callbacks use. Neither allocates, locks or waits after construction, so any thread
// may use them while CUPTI holds its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace collector::capture {

// A stack of small numbers. The buffer that came back last, whose memory is warmest, goes out first.
class IndexStack {
 public:
  explicit IndexStack(uint32_t capacity) : next_(std::make_unique<std::atomic<uint32_t>[]>(capacity)) {}

  void push(uint32_t index) noexcept {
    uint64_t head = head_.load(std::memory_order_relaxed);
    uint64_t wanted;
    do {
      next_[index].store(static_cast<uint32_t>(head), std::memory_order_relaxed);
      wanted = tagged(head, index + 1);
    } while (!head_.compare_exchange_weak(head, wanted, std::memory_order_release, std::memory_order_relaxed));
  }

  bool pop(uint32_t& index) noexcept {
    uint64_t head = head_.load(std::memory_order_acquire);
    uint64_t wanted;
    do {
      const auto top = static_cast<uint32_t>(head);
      if (top == 0) return false;
      index = top - 1;
      wanted = tagged(head, next_[index].load(std::memory_order_relaxed));
    } while (!head_.compare_exchange_weak(head, wanted, std::memory_order_acquire, std::memory_order_acquire));
    return true;
  }

 private:
  // The upper half counts changes. A head that was changed and changed back therefore differs from the old one (ABA).
  static uint64_t tagged(uint64_t old_head, uint32_t top) { return ((old_head >> 32) + 1) << 32 | top; }

  std::unique_ptr<std::atomic<uint32_t>[]> next_;
  std::atomic<uint64_t> head_{0};  // low half: index + 1, or 0 when empty
};

// A first-in-first-out queue for many producers and many consumers, after Dmitry Vyukov's bounded queue. `Capacity`
// must be at least the number of items that can be queued at once; then push never fails.
template <typename Value>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t at_least) {
    size_t capacity = 2;
    while (capacity < at_least) capacity *= 2;
    mask_ = capacity - 1;
    cells_ = std::make_unique<Cell[]>(capacity);
    for (size_t i = 0; i < capacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  bool push(const Value& value) noexcept {
    size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          cell.value = value;
          cell.turn.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < at) {
        return false;  // full
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  bool pop(Value& value) noexcept {
    size_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at + 1) {
        if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          value = cell.value;
          cell.turn.store(at + mask_ + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < at + 1) {
        return false;  // empty, or the producer has not finished yet
      } else {
        at = head_.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  struct Cell {
    std::atomic<size_t> turn;
    Value value;
  };
  std::unique_ptr<Cell[]> cells_;
  size_t mask_;
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) std::atomic<size_t> head_{0};
};

}  // namespace collector::capture
