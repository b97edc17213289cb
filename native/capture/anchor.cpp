#include "capture/anchor.h"

#include <cstdlib>
#include <ctime>

#include "capture/clocks.h"

namespace collector::capture {

std::optional<Anchor> read_clocks(const cupti::Library& library) {
  std::optional<Anchor> best;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const int64_t before = clock_ns(CLOCK_REALTIME);
    const std::optional<int64_t> cupti_ns = library.clock().now();
    if (!cupti_ns) return std::nullopt;
    const int64_t after = clock_ns(CLOCK_REALTIME);
    const int64_t half_ns = (after - before) / 2;
    const Anchor anchor{*cupti_ns, before + half_ns, std::abs(half_ns) + 1};  // the clock may be set in between
    if (!best || anchor.uncertainty_ns < best->uncertainty_ns) best = anchor;
  }
  return best;
}

}  // namespace collector::capture
