// The two containers that CUPTI's callbacks use. Neither allocates, locks or waits after construction, so any thread
// may use them while CUPTI holds its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace collector::capture {

// A stack of small numbers. The buffer that came back last, whose memory is warmest, goes out first.
//
// On a processor with weak ordering: only read-modify-write operations change the head, so each of them continues the
// release sequence of every push before it. A pop that reads the head with acquire therefore sees what all these pushes
// wrote: the links, and what their threads did to the buffers. The link that a pop reads may already be that of a later
// push of the same number; then the head has changed since, its count differs, and the exchange fails.
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

// A first-in-first-out queue for many producers and one consumer, after Dmitry Vyukov's bounded queue. The consumer may
// be another thread later, if something else orders the two: a start or a join. `at_least` must be at least the number
// of items that can be queued at once; then push never fails. With two consumers it could: one that sleeps between
// taking its place and emptying the cell would stop the producers a lap later, with nearly all other cells empty.
//
// On a processor with weak ordering: the turn of a cell is stored with release and read with acquire, which hands the
// value to the consumer, and the empty cell to the producer one lap later. Between a producer's read of the turn and
// its own store nobody else writes the cell, because the exchange of the position gave it to this thread. The position
// of the producers is read with acquire and changed with release for another reason: a thread could otherwise read a
// turn that is out of date, and take a queue for full that is not. The position that a producer reads tells it what the
// producers before it knew, and one of them, or itself, got its item from the consumer that had emptied this cell.
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
    size_t at = tail_.load(std::memory_order_acquire);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
          cell.value = value;
          cell.turn.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < at) {
        return false;  // full
      } else {
        at = tail_.load(std::memory_order_acquire);
      }
    }
  }

  bool pop(Value& value) noexcept {
    Cell& cell = cells_[head_ & mask_];
    if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return false;  // empty, or still being filled
    value = cell.value;
    cell.turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return true;
  }

 private:
  struct Cell {
    std::atomic<size_t> turn;
    Value value;
  };
  std::unique_ptr<Cell[]> cells_;
  size_t mask_;
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) size_t head_ = 0;
};

}  // namespace collector::capture
