// Further facts about ops, collectives and calls, besides their names and times, as arguments of their slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collector::draw {

struct OpDetails {
  struct Run {
    int64_t start_ns;  // wall time; of calls, the correlation id
    int64_t duration_ns;
    uint32_t thread_id;  // of collectives, the correlation id; of calls 0
    uint32_t details;    // place among `arguments`
  };
  using Arguments = std::vector<std::pair<std::string, std::string>>;

  std::vector<Run> runs;  // in order of their starts; no two have the same times and thread
  std::vector<Arguments> arguments;

  // The arguments of the op that ran then; null if none are stated.
  const Arguments* of(int64_t start_ns, int64_t duration_ns, uint32_t thread_id) const;
};

}  // namespace collector::draw
