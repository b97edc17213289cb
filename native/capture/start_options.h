// How a session is to record.
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
  // Collect also when another client of this process holds the subscription. Kineto takes it at its first use and
  // never gives it back; while it is idle, activity records can still be collected beside it.
  bool share_subscription = false;
  // A file to keep a Journal in; empty: none.
  std::string journal;
};

// Throws std::invalid_argument where there can be no such buffers.
void check(const StartOptions& options);

}  // namespace collector::capture
