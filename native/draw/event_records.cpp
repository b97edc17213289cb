#include "draw/event_records.h"

#include <algorithm>
#include <utility>

namespace collector::draw {

EventRecords::EventRecords(std::vector<EventRecord> records) : records_(std::move(records)) {
  std::stable_sort(records_.begin(), records_.end(),
                   [](const EventRecord& a, const EventRecord& b) { return a.correlation_id < b.correlation_id; });
  for (size_t i = 0; i < records_.size(); ++i) {
    by_event_[records_[i].event_id].push_back(i);
    if (records_[i].event_sync_id != 0) by_sync_id_.emplace(records_[i].event_sync_id, i);
  }
}

const EventRecord* EventRecords::of_call(uint32_t correlation_id) const {
  const auto found =
      std::lower_bound(records_.begin(), records_.end(), correlation_id,
                       [](const EventRecord& record, uint32_t wanted) { return record.correlation_id < wanted; });
  return found == records_.end() || found->correlation_id != correlation_id ? nullptr : &*found;
}

const EventRecord* EventRecords::waited_for(uint32_t event_id, uint64_t event_sync_id, uint32_t correlation_id) const {
  if (event_sync_id != 0) {
    const auto found = by_sync_id_.find(event_sync_id);
    if (found != by_sync_id_.end()) return &records_[found->second];
  }
  const auto found = by_event_.find(event_id);
  if (found == by_event_.end()) return nullptr;
  const std::vector<size_t>& places = found->second;
  const auto after =
      std::lower_bound(places.begin(), places.end(), correlation_id,
                       [this](size_t place, uint32_t call) { return records_[place].correlation_id < call; });
  return after == places.begin() ? nullptr : &records_[*(after - 1)];
}

}  // namespace collector::draw
