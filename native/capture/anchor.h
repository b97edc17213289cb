// One instant on CUPTI's clock and on the wall clock.
#pragma once

#include <cstdint>
#include <optional>

#include "cupti/library.h"

namespace collector::capture {

struct Anchor {
  int64_t cupti_ns;
  int64_t wall_ns;         // CLOCK_REALTIME
  int64_t uncertainty_ns;  // the wall time is within this distance of the CUPTI time
};

// The present instant; no value if CUPTI's clock cannot be read.
std::optional<Anchor> read_clocks(const cupti::Library& library);

}  // namespace collector::capture
