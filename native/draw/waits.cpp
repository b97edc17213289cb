#include "draw/waits.h"

#include <algorithm>
#include <iterator>

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

int64_t after(int64_t time_ns) { return time_ns == INT64_MAX ? time_ns : time_ns + 1; }

// Of one of the bounds.
size_t place_of(const std::vector<int64_t>& bounds, int64_t time_ns) {
  return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), time_ns) - bounds.begin());
}

}  // namespace

bool holds_waits(const Group& group) {
  return !group.name.on_gpu && group.name.kind == DeviceKind::kOther && group.name.track == "waits";
}

void Waits::add_wait(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank) {
  if (stepstats::kind_of(node.activity) != TableKind::kSynchronization || span.end_ns() <= span.start_ns) return;
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
  if (lists_.empty()) index();
  rank_ = group.rank;
  is_stream_ = !waits_.empty() && group.name.kind == DeviceKind::kStream;
  is_known_ = false;
  num_lists_ = 0;
}

void Waits::index() {
  for (size_t i = 0; i < waits_.size(); ++i) {
    const Wait& wait = waits_[i];
    lists_[{wait.rank, wait.context_id, wait.stream_id, wait.before_correlation != 0}].waits.push_back(i);
  }
  for (auto& [key, list] : lists_) {
    for (const size_t place : list.waits) {
      list.bounds.push_back(waits_[place].span.start_ns);
      list.bounds.push_back(after(waits_[place].span.end_ns()));
    }
    std::sort(list.bounds.begin(), list.bounds.end());
    list.bounds.erase(std::unique(list.bounds.begin(), list.bounds.end()), list.bounds.end());
    std::vector<int64_t> change(list.bounds.size(), 0);  // of the number of waits, at the start of a piece
    for (const size_t place : list.waits) {
      ++change[place_of(list.bounds, waits_[place].span.start_ns)];
      --change[place_of(list.bounds, after(waits_[place].span.end_ns()))];
    }
    list.is_in_wait.resize(list.bounds.size());
    int64_t num_open = 0;
    for (size_t piece = 0; piece < change.size(); ++piece) {
      num_open += change[piece];
      list.is_in_wait[piece] = num_open > 0;
    }
    if (!std::get<bool>(key)) list.latest.resize(list.bounds.size());
  }
}

std::optional<size_t> Waits::List::piece_of(int64_t time_ns) const {
  const auto behind = std::upper_bound(bounds.begin(), bounds.end(), time_ns);
  if (behind == bounds.begin() || behind == bounds.end()) return std::nullopt;
  return static_cast<size_t>(behind - bounds.begin()) - 1;
}

void Waits::find_lists(const Node& node) {
  is_known_ = true;
  TypedActivity activity;
  activity.read(node.activity);
  const auto context_id = static_cast<uint32_t>(activity[ActivityField::kContextId]);
  const auto stream_id = static_cast<uint32_t>(activity[ActivityField::kStreamId]);
  for (const uint32_t stream : {stream_id, kAnyStream}) {
    for (const bool is_event : {false, true}) {
      const auto found = lists_.find({rank_, context_id, stream, is_event});
      if (found != lists_.end()) of_stream_[num_lists_++] = &found->second;
    }
    if (stream_id == kAnyStream) return;
  }
}

void Waits::match(const Node& node, const Span& span, uint64_t ordinal) {
  if (!is_known_) find_lists(node);
  if (span.duration_ns < kShortestSourceNs) return;
  const Source source{span.end_ns(), node.correlation_id, ordinal};
  for (size_t i = 0; i < num_lists_; ++i) {
    List& list = *of_stream_[i];
    const std::optional<size_t> piece = list.piece_of(source.end_ns);
    if (!piece || !list.is_in_wait[*piece]) continue;
    if (list.latest.empty()) {
      list.sources.push_back(source);
    } else if (std::optional<Source>& latest = list.latest[*piece]; !latest || latest->is_before(source)) {
      latest = source;
    }
  }
}

void Waits::find_sources(List& list) {
  std::vector<size_t> last_before(list.bounds.size());  // by piece: the last one with an activity up to it, plus 1
  for (size_t piece = 0, last = 0; piece < list.bounds.size(); ++piece) {
    if (list.latest[piece]) last = piece + 1;
    last_before[piece] = last;
  }
  for (const size_t place : list.waits) {
    Wait& wait = waits_[place];
    const size_t first = place_of(list.bounds, wait.span.start_ns);
    const size_t last = last_before[place_of(list.bounds, after(wait.span.end_ns())) - 1];
    if (last > first) wait.source = list.latest[last - 1]->ordinal + 1;
  }
}

// In the order of their correlation ids: before a wait is asked for, the activities that were launched before its event
// was recorded, and no others, are in their pieces.
void Waits::find_sources_of_events(List& list) {
  std::vector<size_t> waits = list.waits;
  std::sort(waits.begin(), waits.end(),
            [this](size_t a, size_t b) { return waits_[a].before_correlation < waits_[b].before_correlation; });
  std::stable_sort(list.sources.begin(), list.sources.end(),
                   [](const Source& a, const Source& b) { return a.correlation_id < b.correlation_id; });
  std::map<size_t, Source> latest;  // by piece
  auto next = list.sources.begin();
  for (const size_t place : waits) {
    Wait& wait = waits_[place];
    for (; next != list.sources.end() && next->correlation_id < wait.before_correlation; ++next) {
      const auto [known, is_new] = latest.try_emplace(*list.piece_of(next->end_ns), *next);
      if (!is_new && known->second.is_before(*next)) known->second = *next;
    }
    const auto behind = latest.lower_bound(place_of(list.bounds, after(wait.span.end_ns())));
    if (behind == latest.begin()) continue;
    const auto& [piece, source] = *std::prev(behind);
    if (piece >= place_of(list.bounds, wait.span.start_ns)) wait.source = source.ordinal + 1;
  }
}

void Waits::link(uint64_t& next_flow_id) {
  for (auto& [key, list] : lists_) {
    if (std::get<bool>(key)) {
      find_sources_of_events(list);
    } else {
      find_sources(list);
    }
  }
  for (const Wait& wait : waits_) {
    if (wait.source != 0) arrows_.add(wait.source - 1, wait.ordinal);
  }
  arrows_.number(next_flow_id);
}

}  // namespace collector::draw
