// The memory in use over time, per allocator.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "draw/series.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

struct AllocatorChanges {
  std::string_view allocator;
  bool estimated = false;      // from the tensors' consumers, as there is no record of the allocations
  std::vector<Delta> changes;  // in bytes; wall time, unsorted
};

// Uses the allocation records if the step has any. Otherwise each output counts from its op's start to the end of the
// last op that names it as an input. Changes whose start is not `is_plausible` are left out. `may_have_records`:
// whether any node has an AllocatorMemoryUsed.
std::vector<AllocatorChanges> read_memory_changes(const stepstats::StepStats& step,
                                                  const std::vector<const stepstats::Device*>& devices,
                                                  bool may_have_records,
                                                  const std::function<bool(int64_t)>& is_plausible);

}  // namespace collector::draw
