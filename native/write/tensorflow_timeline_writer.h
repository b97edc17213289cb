// TensorFlow's timeline to the byte, from StepStats wire bytes. collector/timeline/tensorflow_rules.py is the same,
// readable.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stepstats/step_stats.h"
#include "write/output.h"

namespace collector::convert {

enum class OpTime : uint8_t {
  kSchedule,  // ops are where the host ran them
  kGpu,       // ops start with their first kernel and end with their last
  kAll,       // ops start on the host and end with their last kernel
};

struct TensorflowTimelineOptions {
  bool show_dataflow = true;
  bool show_memory = false;
  OpTime op_time = OpTime::kSchedule;
  bool pretty = true;
  std::unordered_map<int32_t, std::string> data_type_names;  // "DT_FLOAT" by number; others are shown as numbers
};

// The exact answer needs numbers beyond 64 bits (TensorFlow's are Python's).
class BeyondInt64 : public std::runtime_error {
 public:
  BeyondInt64() : std::runtime_error("a time or a number of bytes does not fit 64 bits") {}
};

// Writes the trace as TensorFlow's Timeline.generate_chrome_trace_format returns it, or compact.
// Throws WireError, also where a text to be written is not UTF-8, and BeyondInt64; then the output is not to be used.
void write_tensorflow_timeline(const StepStats& step, const TensorflowTimelineOptions& options, Output& output);

struct AllocatorMaximum {
  std::string allocator;
  int64_t time_us = 0;
  int64_t num_bytes = 0;
  std::vector<std::string> tensors;
};

// The moments at which the allocators held the most, in the order in which the allocators first come.
std::vector<AllocatorMaximum> allocator_maximums(const StepStats& step, const TensorflowTimelineOptions& options);

}  // namespace collector::convert
