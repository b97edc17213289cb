// The backward passes of PyTorch's ops: arrows from the start of an op to the start of its backward pass, which states
// the same number of autograd (collector/analysis/backward.py answers the same from columns).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "draw/arrows.h"
#include "stepstats/activity.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

// Order of the calls: add_annotation for all annotations that will be drawn, link. Ordinals are numbers of nodes.
class BackwardPasses {
 public:
  // Whether no annotation has a number.
  bool empty() const { return ranges_.empty(); }

  // Adds an annotation; one without a number is ignored.
  void add_annotation(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal, uint32_t rank);
  // Connects ops and backward passes; the ids of the arrows start at next_flow_id.
  void link(uint64_t& next_flow_id);

  const Arrows& arrows() const { return arrows_; }

 private:
  struct Range {
    int64_t start_ns;
    int64_t end_ns;
    uint64_t ordinal;
    uint32_t thread_id;
    bool is_backward;
  };

  std::map<std::pair<uint32_t, int64_t>, std::vector<Range>> ranges_;  // by rank and number
  Arrows arrows_;
};

}  // namespace collector::draw
