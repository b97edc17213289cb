#include "draw/waits.h"

#include <algorithm>

#include "stepstats/typed_activity.h"

namespace collector::draw {

using stepstats::ActivityField;
using stepstats::DeviceKind;
using stepstats::Group;
using stepstats::Node;
using stepstats::Span;
using stepstats::TableKind;
using stepstats::TypedActivity;

namespace {

// CUpti_ActivitySynchronizationType. A stream that waits for an event (2) does not hold up the host.
enum SyncType : uint8_t { kEvent = 1, kStream = 3, kContext = 4 };

// An arrow starts inside the activity, before its last nanosecond; it may end inside the wait in that nanosecond.
constexpr int64_t kShortestSourceNs = 2;

}  // namespace

bool holds_waits(const Group& group) {
  return !group.name.on_gpu && group.name.kind == DeviceKind::kOther && group.name.track == "waits";
}

void Waits::add_wait(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank) {
  if (stepstats::kind_of(node.activity) != TableKind::kSynchronization || span.duration_ns == 0) return;
  TypedActivity activity;
  activity.read(node.activity);
  Wait wait{span, ordinal, rank, static_cast<uint32_t>(activity[ActivityField::kContextId]), kAnyStream, 0};
  switch (activity[ActivityField::kSyncType]) {
    case kContext:
      break;
    case kStream:
      wait.stream_id = static_cast<uint32_t>(activity[ActivityField::kStreamId]);
      break;
    case kEvent: {
      const EventRecord* const record =
          records_.waited_for(static_cast<uint32_t>(activity[ActivityField::kEventId]),
                              static_cast<uint64_t>(activity[ActivityField::kEventSyncId]), node.correlation_id);
      if (record == nullptr) return;
      wait.context_id = record->context_id;
      wait.stream_id = record->stream_id;
      wait.before_correlation = record->correlation_id;
      break;
    }
    default:
      return;
  }
  waits_.push_back(wait);
}

void Waits::begin_stream(const Group& group) {
  rank_ = group.rank;
  is_stream_ = !waits_.empty() && group.name.kind == DeviceKind::kStream;
  is_known_ = false;
  candidates_.clear();
  latest_end_ns_.clear();
}

void Waits::find_candidates(const Node& node) {
  is_known_ = true;
  TypedActivity activity;
  activity.read(node.activity);
  const auto context_id = static_cast<uint32_t>(activity[ActivityField::kContextId]);
  const auto stream_id = static_cast<uint32_t>(activity[ActivityField::kStreamId]);
  for (size_t i = 0; i < waits_.size(); ++i) {
    const Wait& wait = waits_[i];
    const bool is_for_stream = wait.stream_id == kAnyStream || wait.stream_id == stream_id;
    if (wait.rank == rank_ && wait.context_id == context_id && is_for_stream) candidates_.push_back(i);
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [this](size_t a, size_t b) { return waits_[a].span.start_ns < waits_[b].span.start_ns; });
  int64_t latest_ns = INT64_MIN;
  for (const size_t place : candidates_) {
    latest_ns = std::max(latest_ns, waits_[place].span.end_ns());
    latest_end_ns_.push_back(latest_ns);
  }
}

void Waits::match(const Node& node, const Span& span, uint64_t ordinal) {
  if (!is_known_) find_candidates(node);
  if (span.duration_ns < kShortestSourceNs) return;
  const int64_t end_ns = span.end_ns();
  const auto after =
      std::upper_bound(candidates_.begin(), candidates_.end(), end_ns,
                       [this](int64_t time, size_t place) { return time < waits_[place].span.start_ns; });
  for (auto at = static_cast<size_t>(after - candidates_.begin()); at > 0 && latest_end_ns_[at - 1] >= end_ns; --at) {
    Wait& wait = waits_[candidates_[at - 1]];
    const bool is_before_event = wait.before_correlation == 0 || node.correlation_id < wait.before_correlation;
    if (wait.span.end_ns() < end_ns || !is_before_event) continue;
    if (wait.source != 0 && wait.source_end_ns > end_ns) continue;
    wait.source = ordinal + 1;
    wait.source_end_ns = end_ns;
  }
}

void Waits::link(uint64_t& next_flow_id) {
  for (const Wait& wait : waits_) {
    if (wait.source != 0) arrows_.add(wait.source - 1, wait.ordinal);
  }
  arrows_.number(next_flow_id);
}

}  // namespace collector::draw
