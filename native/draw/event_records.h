// The calls that recorded CUDA events into streams, as far as a step has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace collector::convert {

struct EventRecord {
  uint32_t correlation_id;  // of the call
  uint32_t event_id;
  uint64_t event_sync_id;  // of this recording of the event; 0: not known
  uint32_t context_id;
  uint32_t stream_id;
};

class EventRecords {
 public:
  explicit EventRecords(std::vector<EventRecord> records);

  // Null: the call recorded no event, or that is not known.
  const EventRecord* of_call(uint32_t correlation_id) const;
  // What a wait for an event was for: the recording of that id or, without one, the last before the wait's own call.
  const EventRecord* waited_for(uint32_t event_id, uint64_t event_sync_id, uint32_t correlation_id) const;

 private:
  std::vector<EventRecord> records_;  // in the order of the calls
  std::unordered_map<uint64_t, size_t> by_sync_id_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_event_;
};

}  // namespace collector::convert
