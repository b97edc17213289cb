// Converts Python's arguments of a drawing into C++ arguments.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "draw/event_records.h"

namespace collector::bindings {

// Call, event, synchronisation, context and stream.
using EventRecordArguments = std::vector<std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, uint32_t>>;

inline std::vector<draw::EventRecord> to_event_records(const EventRecordArguments& arguments) {
  std::vector<draw::EventRecord> records;
  records.reserve(arguments.size());
  for (const auto& [call, event, sync, context, stream] : arguments) {
    records.push_back({call, event, sync, context, stream});
  }
  return records;
}

}  // namespace collector::bindings
