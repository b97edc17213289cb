// The options of a session: possible and impossible buffers.
#include <doctest/doctest.h>

#include <stdexcept>

#include "capture/start_options.h"

using collector::capture::check;
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
