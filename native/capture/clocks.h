// The system's clocks in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace collector::capture {

inline constexpr int64_t kMillisecond = 1'000'000;

inline int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline timespec timespec_of(int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace collector::capture
