// The properties of every simulated device and context; they belong to no particular GPU.
#pragma once

#include <cstdint>

namespace collector::simulator {

inline constexpr uint32_t kMultiprocessors = 132;
inline constexpr uint32_t kThreadsPerBlock = 1024;
inline constexpr uint32_t kThreadsPerWarp = 32;
inline constexpr uint32_t kClockKhz = 1'980'000;
inline constexpr uint32_t kComputeMajor = 9;
inline constexpr uint32_t kComputeMinor = 0;
inline constexpr uint32_t kNullStream = 7;  // CUPTI's number of a context's default stream

}  // namespace collector::simulator
