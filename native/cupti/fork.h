// Whether this process is a forked child of one that had used CUDA. Neither CUDA nor CUPTI survives a fork: the child
// has no decode thread, and a lock that another thread of the parent held at that moment stays locked for ever.
#pragma once

#include <optional>

#include "cupti/failure.h"

namespace collector::cupti {

bool forked_after_use() noexcept;

// To be called before CUDA or CUPTI is used, and before any lock is taken that is held around such uses. The failure
// says that this process may use neither.
std::optional<Failure> begin_use();

}  // namespace collector::cupti
