// The times that the nodes of a step can have.
#pragma once

#include <cstdint>
#include <vector>

#include "stepstats/activity.h"
#include "stepstats/groups.h"
#include "stepstats/step_stats.h"

namespace collector::stepstats {

// Viewers store µs in doubles, in which every ns is exact up to here, i.e. 104 days.
constexpr int64_t kLargestTimeNs = int64_t{1} << 53;
// Starts at a larger distance from the median are not part of the step. All other starts lie within kLargestTimeNs.
constexpr int64_t kFarNs = kLargestTimeNs / 4;

class PossibleTimes {
 public:
  // Finds the median of a sample of all starts, which tolerates nodes without a time and times that wrapped around.
  PossibleTimes(const StepStats& step, const std::vector<Group>& groups);

  bool is_plausible(int64_t start_ns) const {
    return start_ns >= middle_ns_ - kFarNs && start_ns <= middle_ns_ + kFarNs;
  }
  bool has(const Span& span) const { return span.valid() && span.duration_ns <= kFarNs && is_plausible(span.start_ns); }

 private:
  int64_t middle_ns_ = 0;
};

}  // namespace collector::stepstats
