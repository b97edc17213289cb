// The ranges of a program that forgets to end some.
#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "capture/capture_ranges.h"

namespace collector::capture {
namespace {

constexpr Owner kDomain = 1;
constexpr Owner kOther = 2;

CaptureRanges& watching() {
  CaptureRangeOptions options;
  options.source = CaptureRangeOptions::Source::kNvtx;
  options.name = "step";
  options.any_domain = true;
  CaptureRanges::instance().select(options);
  return CaptureRanges::instance();
}

TEST_CASE("ranges that are pushed and never popped take no memory each") {
  CaptureRanges& ranges = watching();
  std::thread([&] {
    constexpr int kPushes = 1'000'000;
    const size_t before = ::mallinfo2().uordblks;
    for (int i = 0; i < kPushes; ++i) {
      ranges.pushed(kDomain, "forgotten", "");
      ranges.pushed(kOther, i % 2 == 0 ? "step" : "forgotten", "");
    }
    CHECK(::mallinfo2().uordblks < before + (size_t{1} << 20));
    CHECK(ranges.is_open());
    for (int i = 0; i < kPushes; ++i) ranges.popped(kOther);
    CHECK(!ranges.is_open());
    ranges.pushed(kDomain, "step", "");
    CHECK(ranges.is_open());
    ranges.popped(kOther);  // it has none
    CHECK(ranges.is_open());
    ranges.popped(kDomain);
    CHECK(!ranges.is_open());
    ranges.pushed(kDomain, "step", "");
  }).join();
  CHECK(!ranges.is_open());  // the thread has ended inside it
}

TEST_CASE("of ranges that are started and never ended a bounded number is followed") {
  CaptureRanges& ranges = watching();
  constexpr size_t kStarts = size_t{1} << 16;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < kStarts; ++i) ids.push_back(ranges.started(0, "step", ""));
  CHECK(ranges.started(0, "step", "") == 0);
  CHECK(ranges.started(7, "step", "") == 7);
  ranges.ended(7);
  for (const uint64_t id : ids) {
    REQUIRE(ranges.is_open());
    ranges.ended(id);
  }
  CHECK(!ranges.is_open());
  ids = {ranges.started(0, "step", "")};
  CHECK(ids[0] != 0);
  ranges.ended(ids[0]);
  CHECK(!ranges.is_open());
  ranges.select({});
}

}  // namespace
}  // namespace collector::capture
