// A recording as StepStats: the wire bytes of what each device did, in one pass over the recording's columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stepstats/recorded_table.h"

namespace collector::convert {

// Messages of some rows in wire format: row r has messages[index[r]], which is empty for none.
struct RowMessages {
  std::vector<std::string> messages;
  const uint32_t* index = nullptr;  // null: no row has one
};

// Texts by `name_id` are empty where no row has that name.
struct RecordedStep {
  RecordedTable kernels, memcpys, memsets, api_calls, external_correlations, synchronizations, overheads,
      memory_operations, annotations;
  std::string device_prefix;
  int64_t offset_ns = 0;  // wall time less CUPTI's

  std::vector<std::string> short_names;  // of kernels, by name_id: "add<float>"
  std::vector<std::string> whole_names;  // of kernels, by name_id: "void add<float>(float*)"
  std::vector<std::string> api_names;    // by name_id: "cudaLaunchKernel"
  std::vector<std::string> paths;        // of annotations, by name_id: "layer1/conv"
  std::vector<std::string> ops;          // of annotations, by name_id: as node names have them
  std::vector<std::string> annotation_labels;
  const uint32_t* annotation_label = nullptr;  // of each annotation, its place in annotation_labels
  RowMessages outputs;                         // NodeOutput, of annotations
  RowMessages memory;                          // AllocatorMemoryUsed, of API calls
  std::string thread_names;                    // of /cpu:0, as DeviceStepStats has them on the wire

  // By these an activity finds its annotation: all annotations that there are, also those outside the step.
  size_t num_known_annotations = 0;
  ColumnView known_external_id;
  ColumnView known_name_id;
  int64_t annotation_external_kind = 0;

  // Whole tables of rows that have no node, in the order in which they are written: all their columns are fields.
  std::vector<RecordedTable> without_node;
};

// The devices of a step, measured at once and written when there is memory for them.
class RecordedStepEncoder {
 public:
  // `step` outlives the encoder. Throws std::invalid_argument: a table lacks a column, or a value points nowhere.
  explicit RecordedStepEncoder(const RecordedStep& step);
  ~RecordedStepEncoder();
  RecordedStepEncoder(const RecordedStepEncoder&) = delete;
  RecordedStepEncoder& operator=(const RecordedStepEncoder&) = delete;

  // StepStats.
  size_t step_bytes() const;
  char* write_step(char* to) const;

  // Capture.rows: those without a node.
  size_t capture_bytes() const;
  char* write_capture(char* to) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace collector::convert
