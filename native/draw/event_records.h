// The calls that recorded CUDA events into streams, if the step contains them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace collector::draw {

struct EventRecord {
  uint32_t correlation_id;  // of the call
  uint32_t event_id;
  uint64_t event_sync_id;  // of this recording of the event; 0: unknown
  uint32_t context_id;
  uint32_t stream_id;
};

class EventRecords {
 public:
  explicit EventRecords(std::vector<EventRecord> records);

  // The event that a call recorded; null if it recorded none or the step does not contain it.
  const EventRecord* of_call(uint32_t correlation_id) const;
  // The recording that a wait for an event waited for: the one with that id or, without an id, the last one before the
  // wait's own call.
  const EventRecord* waited_for(uint32_t event_id, uint64_t event_sync_id, uint32_t correlation_id) const;

 private:
  std::vector<EventRecord> records_;  // sorted by call
  std::unordered_map<uint64_t, size_t> by_sync_id_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_event_;
};

}  // namespace collector::draw
