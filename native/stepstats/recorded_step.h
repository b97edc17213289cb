// Encodes a recording as StepStats in wire format, in one pass over the recording's columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinds/generated/activities.h"
#include "stepstats/recorded_table.h"

namespace collector::stepstats {

// Encoded messages for some rows: row r has messages[index[r]], which is empty for rows without one.
struct RowMessages {
  std::vector<std::string> messages;
  const uint32_t* index = nullptr;  // null: no row has a message
};

// A device of the host: its name without the prefix, and its threads in the wire format of DeviceStepStats.
struct HostDevice {
  std::string name;
  std::string thread_names;
};

// The texts by `name_id`; empty for ids that no row has.
struct RecordedStep {
  RecordedTable kernels, memcpys, memsets, api_calls, external_correlations, annotations, graph_launches, other_ranges;
  std::array<RecordedTable, std::size(kSideTables)> side_tables;  // in the order of kSideTables
  std::string device_prefix;
  int64_t offset_ns = 0;  // wall time minus CUPTI's time

  std::vector<std::string> short_names;  // of kernels, by name_id: "add<float>"
  std::vector<std::string> whole_names;  // of kernels, by name_id: "void add<float>(float*)"
  std::vector<std::string> api_names;    // by name_id: "cudaLaunchKernel"
  std::vector<std::string> side_names;   // of rows of side tables that have one, by name_id
  std::vector<std::string> graph_names;  // likewise
  std::vector<std::string> other_range_names;
  std::vector<std::string> paths;  // of annotations, by name_id: "layer1/conv"
  std::vector<std::string> ops;    // of annotations, by name_id: as written in node names
  std::vector<std::string> annotation_labels;
  std::vector<uint32_t> annotation_op_ends;    // of the labels, where their op ends in bytes
  const uint32_t* annotation_label = nullptr;  // of each annotation, its index in annotation_labels
  RowMessages outputs;                         // NodeOutput, of annotations
  RowMessages memory;                          // AllocatorMemoryUsed, of API calls

  std::vector<HostDevice> host_devices;
  // The index of each row's device among them; null: all rows are of the first.
  const uint32_t* host_device_of_annotation = nullptr;
  const uint32_t* host_device_of_call = nullptr;
  const uint32_t* host_device_of_other_range = nullptr;

  // All annotations, including those outside the step: activities find their annotation by these ids.
  size_t num_known_annotations = 0;
  ColumnView known_external_id;
  ColumnView known_name_id;
  int64_t annotation_external_kind = 0;

  // Device and stream -> the lowest context, whose stream has a name without the context. Others have their own lowest.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> first_contexts;

  // The tables of rows that have no node, in the order in which they are written, with all their columns as fields.
  std::vector<RecordedTable> without_node;
};

// The devices of a step: measured by the constructor and written once memory is allocated.
class RecordedStepEncoder {
 public:
  // `step` must outlive the encoder. Throws std::invalid_argument if a table lacks a column or a value is out of range.
  explicit RecordedStepEncoder(const RecordedStep& step);
  ~RecordedStepEncoder();
  RecordedStepEncoder(const RecordedStepEncoder&) = delete;
  RecordedStepEncoder& operator=(const RecordedStepEncoder&) = delete;

  // The size of the StepStats.
  size_t step_bytes() const;
  char* write_step(char* to) const;

  // The size of Capture.rows, the rows that have no node.
  size_t capture_bytes() const;
  char* write_capture(char* to) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace collector::stepstats
