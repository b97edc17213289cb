// The waits of streams for CUDA events: arrows from the start of the call that records an event to the start of the
// wait that it ends. A wait without such a call in the step has no arrow.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "draw/arrows.h"
#include "draw/event_records.h"
#include "stepstats/activity.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

// Order of the calls: add_wait for all waits, add_call for all API calls, link. "All" means all nodes that will be
// drawn. Ordinals are numbers of nodes.
class EventWaits {
 public:
  // `records` must outlive this object.
  explicit EventWaits(const EventRecords& records) : records_(records) {}

  // Whether no stream waits for a known recording of an event.
  bool empty() const { return waits_of_.empty(); }

  // Adds a wait; one that is not a stream's wait for an event is ignored.
  void add_wait(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal, uint32_t rank);
  void add_call(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal, uint32_t rank);
  // Connects calls and waits; the ids of the arrows start at next_flow_id.
  void link(uint64_t& next_flow_id) { arrows_.number(next_flow_id); }

  const Arrows& arrows() const { return arrows_; }

 private:
  struct Wait {
    int64_t start_ns;
    uint64_t ordinal;
  };

  const EventRecords& records_;
  std::unordered_map<uint64_t, std::vector<Wait>> waits_of_;  // by rank and correlation id of the call
  Arrows arrows_;
};

}  // namespace collector::draw
