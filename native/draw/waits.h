// The reasons of the host's waits: the arrows from the end of an activity to the end of the wait that it held up.
//
// A wait for a stream or a context was held up by the last activity of that stream, or of any stream of that context,
// that ended during the wait. A wait for a CUDA event was held up by the last activity that was launched into the
// event's stream before the event was recorded there, if it ended during the wait. A wait without such an activity has
// no arrow: its work was over before the wait began.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
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
    if (is_stream_ && (!is_known_ || num_lists_ != 0)) match(node, span, ordinal);
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
  };

  struct Source {
    int64_t end_ns;
    uint32_t correlation_id;
    uint64_t ordinal;

    bool is_before(const Source& other) const {
      return std::tie(end_ns, ordinal) < std::tie(other.end_ns, other.ordinal);
    }
  };

  // The waits of one kind for one stream, or for any stream of a context. Their starts and ends divide the time into
  // pieces, of which each keeps the activity that ended last: a file may have as many waits as activities, and all of
  // them at one time.
  struct List {
    std::vector<size_t> waits;
    std::vector<int64_t> bounds;                // of pieces: starts of waits, and the times after their ends
    std::vector<std::optional<Source>> latest;  // by piece, of waits that are not for events
    std::vector<bool> is_in_wait;               // by piece
    std::vector<Source> sources;                // in waits for events, which not every activity can have held up

    // The piece of a time; none before the first and behind the last.
    std::optional<size_t> piece_of(int64_t time_ns) const;
  };
  using ListKey = std::tuple<uint32_t, uint32_t, uint32_t, bool>;  // rank, context, stream or kAnyStream, for events

  void index();
  // Finds the waits that concern the stream of a node.
  void find_lists(const stepstats::Node& node);
  void match(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal);
  void find_sources(List& list);
  void find_sources_of_events(List& list);

  const EventRecords& records_;
  std::vector<Wait> waits_;
  uint32_t rank_ = 0;       // of the current stream
  bool is_stream_ = false;  // whether it is a stream with waits
  bool is_known_ = false;   // whether its stream and context ids are known
  std::map<ListKey, List> lists_;
  std::array<List*, 4> of_stream_{};  // the lists that concern the current stream
  size_t num_lists_ = 0;              // of them
  Arrows arrows_;
};

}  // namespace collector::draw
