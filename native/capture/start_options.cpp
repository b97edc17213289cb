#include "capture/start_options.h"

#include <stdexcept>

namespace collector::capture {

void check(const StartOptions& options) {
  if (options.buffer_bytes < 4096 || options.buffer_bytes % 8 != 0) {
    throw std::invalid_argument("buffer_bytes must be a multiple of 8 and at least 4096");
  }
  if (options.max_buffers < 1 || options.max_buffers > 65536) {
    throw std::invalid_argument("max_buffers must be 1 to 65536");
  }
  if (options.budget_millionths > 1'000'000 || options.budget_period_ns < kMillisecond) {
    throw std::invalid_argument("budget_millionths must be at most 1000000, and its period at least 1 ms");
  }
  if ((options.segments.has_segments() || options.watch) && !(options.journal_only && !options.journal.empty())) {
    throw std::invalid_argument("segments need a journal that is the only result");
  }
  if (options.ranges.has_ranges() && !(options.journal_only && options.watch)) {
    throw std::invalid_argument("ranges need a journal that is the only result, and to be watched");
  }
}

}  // namespace collector::capture
