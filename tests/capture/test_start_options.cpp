// The options of a session: possible and impossible buffers, and the segments of a ring.
#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>

#include "capture/start_options.h"

using collector::capture::check;
using collector::capture::SegmentLimits;
using collector::capture::StartOptions;

namespace {

StartOptions with_buffers(size_t buffer_bytes, uint32_t max_buffers) {
  StartOptions options;
  options.buffer_bytes = buffer_bytes;
  options.max_buffers = max_buffers;
  return options;
}

}  // namespace

TEST_CASE("buffers are whole words, and not too small") {
  CHECK_NOTHROW(check(StartOptions()));
  CHECK_NOTHROW(check(with_buffers(4096, 1)));
  CHECK_THROWS_AS(check(with_buffers(4088, 1)), std::invalid_argument);
  CHECK_THROWS_AS(check(with_buffers(4097, 1)), std::invalid_argument);
}

TEST_CASE("there is one buffer at least, and 65536 at most") {
  CHECK_NOTHROW(check(with_buffers(4096, 65536)));
  CHECK_THROWS_AS(check(with_buffers(4096, 0)), std::invalid_argument);
  CHECK_THROWS_AS(check(with_buffers(4096, 65537)), std::invalid_argument);
}

TEST_CASE("ranges are for sessions that are watched, and that have a journal alone") {
  StartOptions options;
  options.ranges.source = collector::capture::CaptureRangeOptions::Source::kProfilerApi;
  CHECK_THROWS_AS(check(options), std::invalid_argument);
  options.journal = "journal";
  options.journal_only = true;
  CHECK_THROWS_AS(check(options), std::invalid_argument);
  options.watch = true;
  CHECK_NOTHROW(check(options));
}

TEST_CASE("a ring has eight segments, each with a limit") {
  const SegmentLimits by_size = SegmentLimits::of_ring(uint64_t{512} << 20, 0);
  CHECK(by_size.segment_bytes == uint64_t{64} << 20);
  CHECK(by_size.total_bytes == uint64_t{512} << 20);
  CHECK(by_size.segment_ns == 0);
  CHECK(by_size.total_ns == 0);
  const SegmentLimits by_time = SegmentLimits::of_ring(0, 30'000'000'001);
  CHECK(by_time.segment_ns == 3'750'000'001);
  CHECK(by_time.total_ns == 30'000'000'001);
  CHECK(by_time.segment_bytes == 0);
  CHECK(SegmentLimits::of_ring(1, 1).segment_bytes == 1);
  CHECK(SegmentLimits::of_ring(UINT64_MAX, 0).segment_bytes == (uint64_t{1} << 61));
  CHECK_FALSE(SegmentLimits::of_ring(0, 0).has_segments());
}
