// TensorFlow's timeline, byte for byte, from StepStats wire bytes. collector/timeline/tensorflow_rules.py is the
// readable version of the same rules.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stepstats/step_stats.h"
#include "write/output.h"

namespace collector::write {

enum class OpTime : uint8_t {
  kSchedule,  // ops have the times of the host
  kGpu,       // ops start with their first kernel and end with their last
  kAll,       // ops start on the host and end with their last kernel
};

struct TensorflowTimelineOptions {
  bool show_dataflow = true;
  bool show_memory = false;
  OpTime op_time = OpTime::kSchedule;
  bool pretty = true;
  std::unordered_map<int32_t, std::string> data_type_names;  // "DT_FLOAT" by number; other types are shown as numbers
};

// The exact result needs numbers beyond 64 bits (TensorFlow's numbers are Python's).
class BeyondInt64 : public std::runtime_error {
 public:
  BeyondInt64() : std::runtime_error("a time or a number of bytes does not fit 64 bits") {}
};

// Writes the trace in the form of TensorFlow's Timeline.generate_chrome_trace_format, or compactly. Throws WireError,
// also if a text is not UTF-8, and BeyondInt64; the output is then incomplete and must not be used.
void write_tensorflow_timeline(const stepstats::StepStats& step, const TensorflowTimelineOptions& options,
                               Output& output);

struct AllocatorMaximum {
  std::string allocator;
  int64_t time_us = 0;
  int64_t num_bytes = 0;
  std::vector<std::string> tensors;
};

// The times at which the allocators held the most memory, in the order of the allocators' first use.
std::vector<AllocatorMaximum> allocator_maximums(const stepstats::StepStats& step,
                                                 const TensorflowTimelineOptions& options);

}  // namespace collector::write
