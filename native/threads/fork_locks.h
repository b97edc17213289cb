// The locks of data that a forked child goes on to use.
//
// A child has one thread. A lock that another thread held at the fork stays locked there for ever, and what it guards
// may be half changed. So the forking thread takes these locks before the fork, and releases them after it in both
// processes.
#pragma once

#include <array>
#include <cstddef>

#include "threads/mutex.h"
#include "threads/patient_lock.h"

namespace collector::threads {

// The locks are taken in the order of the list. Several threads may fork at once.
template <size_t count>
class ForkLocks {
 public:
  explicit ForkLocks(const std::array<Mutex*, count>& mutexes) : mutexes_(mutexes) {}

  // Before a fork. A program does not wait for ever in it: a lock that cannot be had is left out.
  void take() noexcept NO_LOCK_ANALYSIS {
    num_held = 0;
    while (num_held < count && lock_within(*mutexes_[num_held], kPatience)) ++num_held;
  }

  // After it, in the parent and in the child; whether all locks were held.
  bool release() noexcept NO_LOCK_ANALYSIS {
    const bool had_all = num_held == count;
    while (num_held > 0) mutexes_[--num_held]->unlock();
    return had_all;
  }

 private:
  const std::array<Mutex*, count> mutexes_;
  static thread_local size_t num_held;  // of the first ones, by this thread
};

template <size_t count>
thread_local size_t ForkLocks<count>::num_held = 0;

}  // namespace collector::threads
