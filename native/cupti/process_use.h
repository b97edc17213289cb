// Whether this process may use CUDA and CUPTI. Neither survives a fork: the child has no decode thread, and a lock that
// another thread of the parent held at the time of the fork stays locked for ever. Nor may they be used while the
// process ends, when their destructors have run.
#pragma once

#include <atomic>
#include <optional>

#include "cupti/failure.h"

namespace collector::cupti {

namespace internal {
extern std::atomic<bool> forked;
extern std::atomic<bool> out_of_use;
}  // namespace internal

// Whether this process was forked from one that had used CUDA.
inline bool forked_after_use() noexcept { return internal::forked.load(std::memory_order_relaxed); }

// Whether neither CUDA nor CUPTI may be called any more.
inline bool out_of_use() noexcept { return internal::out_of_use.load(std::memory_order_relaxed); }

// Must be called before CUDA or CUPTI is used, and before any lock is taken that is held around their calls. A failure
// means that this process may use neither.
std::optional<Failure> begin_use();

// From now on they are out of use: the process ends.
void end_use() noexcept;

}  // namespace collector::cupti
