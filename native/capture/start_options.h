// The options of a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cupti/library.h"
#include "kinds/generated/kinds.h"

namespace collector::capture {

struct StartOptions {
  cupti::LibraryPaths paths;
  std::vector<cupti::ActivityKind> kinds;  // enabled in this order
  size_t buffer_bytes = size_t{4} << 20;
  uint32_t max_buffers = 256;
  // Collect even if another client of this process holds the subscription. Kineto subscribes at its first use and never
  // unsubscribes; while it is idle, activity records can be collected beside it.
  bool share_subscription = false;
  // The file for a Journal; empty for none.
  std::string journal;
};

// Throws std::invalid_argument for buffer options that are impossible.
void check(const StartOptions& options);

}  // namespace collector::capture
