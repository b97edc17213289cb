// Converts Python's arguments of a drawing into C++ arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "draw/event_records.h"
#include "draw/op_details.h"
#include "draw/step_drawing.h"

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

// Starts, durations and threads of ops, which of the details each has, and the arguments of each of these.
using OpDetailArguments = std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<uint32_t>,
                                     std::vector<uint32_t>, std::vector<draw::OpDetails::Arguments>>;

inline draw::OpDetails to_op_details(const OpDetailArguments& arguments) {
  const auto& [starts, durations, threads, details, texts] = arguments;
  draw::OpDetails made;
  made.runs.reserve(starts.size());
  for (size_t row = 0; row < starts.size(); ++row) {
    made.runs.push_back({starts[row], durations.at(row), threads.at(row), details.at(row)});
  }
  made.arguments = texts;
  return made;
}

// Device, figure, unit, wall times and values of each sampled counter.
using SampledArguments =
    std::vector<std::tuple<std::string, std::string, std::string, std::vector<int64_t>, std::vector<int64_t>>>;

inline std::vector<draw::SampledCounter> to_sampled(const SampledArguments& arguments) {
  std::vector<draw::SampledCounter> made;
  made.reserve(arguments.size());
  for (const auto& [device, name, unit, times, values] : arguments) {
    draw::SampledCounter& counter = made.emplace_back(draw::SampledCounter{device, name, unit, {}});
    counter.samples.reserve(times.size());
    for (size_t i = 0; i < times.size(); ++i) counter.samples.push_back({times[i], values.at(i)});
  }
  return made;
}

}  // namespace collector::bindings
