// The properties of every simulated device; they belong to no particular GPU.
#pragma once

#include <cstdint>

namespace collector::simulator {

inline constexpr uint32_t kMultiprocessors = 132;
inline constexpr uint32_t kThreadsPerBlock = 1024;
inline constexpr uint32_t kThreadsPerWarp = 32;
inline constexpr uint32_t kClockKhz = 1'980'000;
inline constexpr uint32_t kComputeMajor = 9;
inline constexpr uint32_t kComputeMinor = 0;

}  // namespace collector::simulator
