// The reasons of the host's waits: the arrows from the end of an activity to the end of the wait that it held up.
//
// A wait for a stream or a context was held up by the last activity of that stream, or of any stream of that context,
// that ended during the wait. A wait for a CUDA event was held up by the last activity that was launched into the
// event's stream before the event was recorded there, if it ended during the wait. A wait without such an activity has
// no arrow: its work was over before the wait began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "draw/arrows.h"
#include "draw/event_records.h"
#include "stepstats/activity.h"
#include "stepstats/groups.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

// Whether a group holds the waits of a host.
bool holds_waits(const stepstats::Group& group);

// Order of the calls: add_wait for all waits; then for each stream begin_stream, and add_activity for all of its
// activities; then link. "All" means all nodes that will be drawn. Ordinals are numbers of nodes.
class Waits {
 public:
  // `records` must outlive this object.
  explicit Waits(const EventRecords& records) : records_(records) {}

  bool empty() const { return waits_.empty(); }

  void add_wait(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal, uint32_t rank);
  void begin_stream(const stepstats::Group& group);
  void add_activity(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal) {
    if (is_stream_ && (!is_known_ || !candidates_.empty())) match(node, span, ordinal);
  }
  // Connects waits and activities; the ids of the arrows start at next_flow_id.
  void link(uint64_t& next_flow_id);

  // From the ends of activities to the ends of waits.
  const Arrows& arrows() const { return arrows_; }

 private:
  static constexpr uint32_t kAnyStream = UINT32_MAX;

  struct Wait {
    stepstats::Span span;
    uint64_t ordinal;
    uint32_t rank;
    uint32_t context_id;
    uint32_t stream_id;           // or kAnyStream
    uint32_t before_correlation;  // of the call that recorded the event; 0: no event
    uint64_t source = 0;          // ordinal of the activity + 1; 0: none yet
    int64_t source_end_ns = 0;
  };

  // Finds the waits that concern the stream of a node.
  void find_candidates(const stepstats::Node& node);
  void match(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal);

  const EventRecords& records_;
  std::vector<Wait> waits_;
  uint32_t rank_ = 0;       // of the current stream
  bool is_stream_ = false;  // whether it is a stream with waits
  bool is_known_ = false;   // whether its stream and context ids are known
  // For the current stream: indices of its waits by start, and the latest end of all waits up to each.
  std::vector<size_t> candidates_;
  std::vector<int64_t> latest_end_ns_;
  Arrows arrows_;
};

}  // namespace collector::draw
