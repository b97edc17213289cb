#include "cupti/clock.h"

#include <chrono>
#include <thread>

namespace collector::cupti {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kGlance = 50'000;           // shows the difference between nanoseconds and ticks
constexpr int64_t kMeasurement = 10'000'000;  // gives the rate to some millionths
constexpr int64_t kLongMeasurement = kSecond;

template <typename SystemClock>
int64_t ns_of() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SystemClock::now().time_since_epoch()).count();
}

int64_t distance(int64_t one, int64_t other) { return one > other ? one - other : other - one; }

}  // namespace

std::optional<ClockReading> Clock::read() const {
  std::optional<ClockReading> best;
  int64_t least = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    ClockReading reading{};
    const int64_t before = ns_of<std::chrono::steady_clock>();
    if (activity_api_.timestamp(&reading.cupti) != Result::kSuccess) return std::nullopt;
    const int64_t after = ns_of<std::chrono::steady_clock>();
    reading.wall_ns = ns_of<std::chrono::system_clock>() - (after - before) / 2;
    reading.monotonic_ns = before + (after - before) / 2;
    if (!best || after - before < least) {
      best = reading;
      least = after - before;
    }
  }
  return best;
}

std::optional<TickScale> Clock::measured(const ClockReading& first) const {
  for (const int64_t ns : {kGlance, kMeasurement}) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    const std::optional<ClockReading> second = read();
    if (!second) return std::nullopt;
    const std::optional<TickScale> scale = TickScale::between(first, *second);
    if (!scale || scale->baseline_ns() >= kMeasurement) return scale;
  }
  return std::nullopt;
}

void Clock::learn() {
  const threads::MutexLock lock(learning_);
  const std::optional<ClockReading> now = read();
  if (!now) return;
  const TickScale* const known = scale();
  if (known != nullptr && known->predicts(*now)) {
    const int64_t since_ns = now->monotonic_ns - known->first().monotonic_ns;
    if (known->baseline_ns() >= kLongMeasurement || since_ns < kLongMeasurement) return;
    if (const std::optional<TickScale> longer = TickScale::between(known->first(), *now)) {
      scale_.store(&scales_.emplace_back(*longer), std::memory_order_release);
    }
    return;
  }
  if (distance(static_cast<int64_t>(now->cupti), now->wall_ns) < kSecond) {
    scale_.store(nullptr, std::memory_order_release);
    return;
  }
  const std::optional<TickScale> scale = measured(*now);
  scale_.store(scale ? &scales_.emplace_back(*scale) : nullptr, std::memory_order_release);
}

}  // namespace collector::cupti
