#include "draw/event_waits.h"

#include <algorithm>
#include <functional>

#include "stepstats/typed_activity.h"

namespace collector::draw {

using stepstats::ActivityField;
using stepstats::Node;
using stepstats::Span;
using stepstats::TableKind;
using stepstats::TypedActivity;

namespace {

constexpr int64_t kStreamWaitsForEvent = 2;  // of CUpti_ActivitySynchronizationType

uint64_t key_of(uint32_t rank, uint32_t correlation_id) { return uint64_t{rank} << 32 | correlation_id; }

}  // namespace

void EventWaits::add_wait(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank) {
  if (stepstats::kind_of(node.activity) != TableKind::kSynchronization) return;
  TypedActivity activity;
  activity.read(node.activity);
  if (activity[ActivityField::kSyncType] != kStreamWaitsForEvent) return;
  const EventRecord* const record =
      records_.waited_for(static_cast<uint32_t>(activity[ActivityField::kEventId]),
                          static_cast<uint64_t>(activity[ActivityField::kEventSyncId]), node.correlation_id);
  if (record != nullptr) waits_of_[key_of(rank, record->correlation_id)].push_back({span.start_ns, ordinal});
}

void EventWaits::add_call(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank) {
  if (stepstats::kind_of(node.activity) != TableKind::kApiCall) return;
  const auto found = waits_of_.find(key_of(rank, node.correlation_id));
  if (found == waits_of_.end()) return;
  // Several calls may have one correlation id, e.g. a runtime call and the driver call inside it; the first to start
  // counts. A viewer would turn an arrow round that goes back in time.
  std::vector<Wait>& waits = found->second;
  const auto later = [&span](const Wait& wait) { return wait.start_ns >= span.start_ns; };
  const auto first = std::stable_partition(waits.begin(), waits.end(), std::not_fn(later));
  for (auto wait = first; wait != waits.end(); ++wait) arrows_.add(ordinal, wait->ordinal);
  waits.erase(first, waits.end());
}

}  // namespace collector::draw
