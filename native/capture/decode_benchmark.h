// The cost of decoding, compared with a copy of the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cupti/library.h"

namespace collector::capture {

// CPU time of each round in nanoseconds.
struct DecodeTimes {
  std::vector<int64_t> decode_ns;
  std::vector<int64_t> memcpy_ns;
  uint64_t records = 0;
};

// Decodes and copies the bytes alternately, each `repeats` times after one unmeasured round, on warm memory.
DecodeTimes measure_decoding(const cupti::Library& library, std::vector<uint64_t> input, size_t bytes, int repeats);

}  // namespace collector::capture
