// Whether this process was forked from a process that had used CUDA. Neither CUDA nor CUPTI survives a fork: the child
// has no decode thread, and a lock that another thread of the parent held at the time of the fork stays locked for
// ever.
#pragma once

#include <atomic>
#include <optional>

#include "cupti/failure.h"

namespace collector::cupti {

namespace internal {
extern std::atomic<bool> forked;
}

inline bool forked_after_use() noexcept { return internal::forked.load(std::memory_order_relaxed); }

// Must be called before CUDA or CUPTI is used, and before any lock is taken that is held around their calls. A failure
// means that this process may use neither.
std::optional<Failure> begin_use();

}  // namespace collector::cupti
