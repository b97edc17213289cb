#include <doctest/doctest.h>

#include <cstdint>
#include <optional>

#include "cupti/activity_api.h"
#include "cupti/clock.h"
#include "cupti/tick_scale.h"

using collector::cupti::ActivityApi;
using collector::cupti::Clock;
using collector::cupti::ClockReading;
using collector::cupti::CuptiFunctions;
using collector::cupti::Result;
using collector::cupti::TickScale;

namespace {

constexpr int64_t kWall = 1'800'000'000'000'000'000;
constexpr int64_t kMillisecond = 1'000'000;
constexpr ClockReading kFirst{4'000'000'000'000'000, kWall, 5'000'000'000};

ClockReading later(int64_t ns, uint64_t ticks) {
  return {kFirst.cupti + ticks, kFirst.wall_ns + ns, kFirst.monotonic_ns + ns};
}

}  // namespace

TEST_CASE("ticks become nanoseconds of the wall clock") {
  const auto scale = TickScale::between(kFirst, later(10 * kMillisecond, 29'900'000));  // 2.99 GHz
  REQUIRE(scale);
  CHECK(scale->ns(kFirst.cupti) == kWall);
  CHECK(scale->ns(kFirst.cupti + 2'990) == kWall + 1'000);
  CHECK(scale->ns(kFirst.cupti - 2'990'000) == kWall - kMillisecond);
  // A month later the rounding of the rate is below a microsecond.
  const int64_t month_ns = int64_t{30} * 86'400 * 1'000 * kMillisecond;
  const int64_t away = scale->ns(kFirst.cupti + static_cast<uint64_t>(month_ns / 100 * 299)) - (kWall + month_ns);
  CHECK(away > -kMillisecond);
  CHECK(away < kMillisecond);
}

TEST_CASE("an unknown time and a time of CUPTI's own clock stay as they are") {
  const auto scale = TickScale::between(kFirst, later(10 * kMillisecond, 25'000'000));
  REQUIRE(scale);
  CHECK(scale->ns(0) == 0);
  CHECK(scale->ns(static_cast<uint64_t>(kWall)) == kWall);
}

TEST_CASE("a slow counter has a scale, too") {
  const auto scale = TickScale::between(kFirst, later(10 * kMillisecond, 312'500));  // 31.25 MHz, as of some aarch64
  REQUIRE(scale);
  CHECK(scale->ns(kFirst.cupti + 1) == kWall + 32);
}

TEST_CASE("clocks of nanoseconds, and clocks that stand still or go back, have no scale") {
  CHECK_FALSE(TickScale::between(kFirst, later(10 * kMillisecond, 10'000'000)));
  CHECK_FALSE(TickScale::between(kFirst, later(10 * kMillisecond, 10'005'000)));  // slewed by 500 ppm
  CHECK_FALSE(TickScale::between(kFirst, later(10 * kMillisecond, 0)));
  CHECK_FALSE(TickScale::between(kFirst, later(0, 1'000)));
  CHECK_FALSE(TickScale::between(kFirst, {kFirst.cupti - 1, kWall + kMillisecond, kFirst.monotonic_ns + kMillisecond}));
  CHECK_FALSE(TickScale::between(kFirst, later(10 * kMillisecond, 2'000'000'000)));  // a jump
  CHECK_FALSE(TickScale::between(kFirst, later(10 * kMillisecond, 1)));
}

TEST_CASE("a scale is kept when the wall clock is set, and when the monotonic clock stops") {
  constexpr int64_t kHour = int64_t{3'600'000} * kMillisecond;
  const auto scale = TickScale::between(kFirst, later(10 * kMillisecond, 29'900'000));
  REQUIRE(scale);
  ClockReading now = later(100 * kMillisecond, 299'000'000);
  CHECK(scale->predicts(now));
  for (const int64_t set_by : {kHour, -kHour}) {
    now.wall_ns = kFirst.wall_ns + 100 * kMillisecond + set_by;
    CHECK(scale->predicts(now));
  }
  ClockReading resumed = later(kHour, kHour / 100 * 299);
  resumed.monotonic_ns = kFirst.monotonic_ns;
  CHECK(scale->predicts(resumed));
  now.cupti += kHour;  // another counter
  CHECK_FALSE(scale->predicts(now));
}

TEST_CASE("a library without a clock has no time") {
  const CuptiFunctions nothing;
  const ActivityApi activity_api(nothing);
  Clock clock(activity_api);
  clock.learn();
  CHECK_FALSE(clock.now());
  CHECK(clock.scale() == nullptr);
}
