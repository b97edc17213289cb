// Nanoseconds from the ticks of a timestamp callback.
#pragma once

#include <cstdint>
#include <optional>

namespace collector::cupti {

// One instant on CUPTI's clock and on the system's clocks.
struct ClockReading {
  uint64_t cupti;
  int64_t wall_ns;       // CLOCK_REALTIME
  int64_t monotonic_ns;  // CLOCK_MONOTONIC
};

// CUPTI's times are nanoseconds of CLOCK_REALTIME, unless the process has registered a callback for them
// (cuptiActivityRegisterTimestampCallback). The profiler of PyTorch registers one that counts ticks of the processor
// (Kineto, CuptiTimestamp.cpp), and CUPTI has no function that takes it back: after the first use of that profiler, all
// times in the process are ticks. A callback that counts nanoseconds of another clock needs no scale.
class TickScale {
 public:
  // The scale of a clock that was read twice. No value if it counts nanoseconds, stands still, or counts at a rate that
  // no clock has.
  static std::optional<TickScale> between(const ClockReading& first, const ClockReading& second);

  // Nanoseconds of CLOCK_REALTIME. 0, which CUPTI writes for an unknown time, stays 0. After a repeated registration
  // CUPTI gives the first kernels times of its own clock (pytorch#192021): what lies in the range of that clock stays
  // as it is.
  int64_t ns(uint64_t ticks) const {
    if (ticks == 0 || ticks >= kOwnClock) return static_cast<int64_t>(ticks);
    const auto since = static_cast<int64_t>(ticks - first_.cupti);
    const Wide scaled = static_cast<Wide>(since) * ns_per_tick_ + (Wide{1} << (kFractionBits - 1));
    return first_.wall_ns + static_cast<int64_t>(scaled >> kFractionBits);
  }

  // Whether the counter goes on as it did. Its time is compared with the wall clock and with the monotonic clock: the
  // former may be set while a session is open, whose times must all be of one scale, and the latter stops while the
  // machine is suspended.
  bool predicts(const ClockReading& now) const;

  // The time over which the rate was measured.
  int64_t baseline_ns() const { return baseline_ns_; }
  const ClockReading& first() const { return first_; }

  // CUPTI's own clock is later than this, which is in 2001; a counter of ticks at 4 GHz gets there after 8 years.
  static constexpr uint64_t kOwnClock = 1'000'000'000'000'000'000;

 private:
  __extension__ using Wide = __int128;

  TickScale(const ClockReading& first, int64_t baseline_ns, uint64_t ticks);

  static constexpr int kFractionBits = 40;

  ClockReading first_;
  int64_t baseline_ns_;
  int64_t ns_per_tick_;  // with kFractionBits
};

}  // namespace collector::cupti
