// How much each allocator held over time.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "draw/series.h"
#include "stepstats/step_stats.h"

namespace collector::convert {

struct AllocatorChanges {
  std::string_view allocator;
  bool estimated = false;      // from the tensors' consumers, for want of a record of the allocations themselves
  std::vector<Delta> changes;  // of bytes; in wall time, in no order
};

// From the allocation records where a step has any; otherwise each output counts from its op's start to the end of the
// last op that names it as an input. Only what starts at a time that `is_plausible` counts.
// `may_have_records`: whether some node has an AllocatorMemoryUsed at all.
std::vector<AllocatorChanges> read_memory_changes(const StepStats& step, const std::vector<const Device*>& devices,
                                                  bool may_have_records,
                                                  const std::function<bool(int64_t)>& is_plausible);

}  // namespace collector::convert
