// Whether this process was forked from a process that had used CUDA. Neither CUDA nor CUPTI survives a fork: the child
// has no decode thread, and a lock that another thread of the parent held at the time of the fork stays locked for
// ever.
#pragma once

#include <optional>

#include "cupti/failure.h"

namespace collector::cupti {

bool forked_after_use() noexcept;

// Must be called before CUDA or CUPTI is used, and before any lock is taken that is held around their calls. A failure
// means that this process may use neither.
std::optional<Failure> begin_use();

}  // namespace collector::cupti
