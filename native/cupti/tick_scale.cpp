#include "cupti/tick_scale.h"

#include <cstdlib>

namespace collector::cupti {
namespace {

// Clocks that count nanoseconds differ by less: the system's clocks are slewed by 500 ppm at most.
constexpr int64_t kSlewDivisor = 500;
constexpr int64_t kMostTicksPerNs = 100;
constexpr int64_t kMostNsPerTick = 1000;
constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

std::optional<TickScale> TickScale::between(const ClockReading& first, const ClockReading& second) {
  const int64_t elapsed_ns = second.monotonic_ns - first.monotonic_ns;
  if (elapsed_ns <= 0 || second.cupti <= first.cupti || second.cupti >= kOwnClock) return std::nullopt;
  const uint64_t ticks = second.cupti - first.cupti;
  const auto elapsed = static_cast<uint64_t>(elapsed_ns);
  if (ticks / kMostTicksPerNs > elapsed || elapsed / kMostNsPerTick > ticks) return std::nullopt;
  const uint64_t difference = ticks > elapsed ? ticks - elapsed : elapsed - ticks;
  if (difference <= elapsed / kSlewDivisor) return std::nullopt;
  return TickScale(first, elapsed_ns, ticks);
}

bool TickScale::predicts(const ClockReading& now) const {
  const int64_t expected_ns = ns(now.cupti);
  const auto is_close = [&](int64_t time_ns) { return std::abs(expected_ns - time_ns) < kSecond; };
  return is_close(now.wall_ns) || is_close(first_.wall_ns + (now.monotonic_ns - first_.monotonic_ns));
}

TickScale::TickScale(const ClockReading& first, int64_t baseline_ns, uint64_t ticks)
    : first_(first),
      baseline_ns_(baseline_ns),
      ns_per_tick_(static_cast<int64_t>((static_cast<Wide>(baseline_ns) << kFractionBits) / ticks)) {}

}  // namespace collector::cupti
