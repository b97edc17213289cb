// Locks for places that must not wait for ever.
#pragma once

#include <cstdint>

#include "threads/mutex.h"
#include "threads/not_cancelled.h"

namespace collector::threads {

// The longest time that a program waits for a lock of ours in one of its own calls.
inline constexpr int64_t kPatience = 2'000'000'000;

// Locks the mutex unless that takes longer than `timeout_ns`; returns whether it did.
inline bool lock_within(Mutex& mutex, int64_t timeout_ns) TRY_ACQUIRE(true, mutex) {
  constexpr int64_t kPauseNs = 200'000;
  for (int64_t waited = 0;; waited += kPauseNs) {
    if (mutex.try_lock()) return true;
    if (waited >= timeout_ns) return false;
    sleep_uncancelled(kPauseNs);
  }
}

}  // namespace collector::threads
