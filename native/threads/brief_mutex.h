// A mutex for a few instructions at a time, which a program takes in its own calls.
//
// Taking and releasing it without contention is one exchange and one store, half the cost of a mutex of the C library,
// which must also check whether a waiting thread is to be woken. Here no thread is woken: a thread that finds it held
// spins for a moment and then sleeps for short times, so that waiting for a holder that is not running costs no
// processor time.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/mutex.h"
#include "threads/not_cancelled.h"

namespace collector::threads {

class CAPABILITY("mutex") BriefMutex {
 public:
  BriefMutex() = default;
  BriefMutex(const BriefMutex&) = delete;
  BriefMutex& operator=(const BriefMutex&) = delete;

  void lock() ACQUIRE() {
    if (is_held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() RELEASE() { is_held_.store(false, std::memory_order_release); }

 private:
  void wait() {
    constexpr int kSpins = 200;
    constexpr int64_t kPauseNs = 20'000;
    for (int looks = 0;; ++looks) {
      const bool seems_free = !is_held_.load(std::memory_order_relaxed);
      if (seems_free && !is_held_.exchange(true, std::memory_order_acquire)) return;
      if (looks >= kSpins) sleep_uncancelled(kPauseNs);
    }
  }

  std::atomic<bool> is_held_{false};
};

// Holds the mutex for a scope.
class SCOPED_CAPABILITY BriefLock {
 public:
  explicit BriefLock(BriefMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~BriefLock() RELEASE() { mutex_.unlock(); }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

 private:
  BriefMutex& mutex_;
};

}  // namespace collector::threads
