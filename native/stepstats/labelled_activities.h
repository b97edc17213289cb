// Reads the names and labels of a step's nodes into columns, for files without the texts and links of a recording, and
// the columns of nodes that have them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kinds/generated/activities.h"
#include "stepstats/devices.h"
#include "stepstats/name_table.h"
#include "stepstats/step_stats.h"
#include "stepstats/typed_rows.h"

namespace collector::stepstats {

struct LabelledActivities {
  // The values of each activity. A text is an index into `texts`; kAbsent means that the node does not contain the
  // value.
  enum Column : uint8_t {
    kDevice,    // index into `devices`
    kCategory,  // as in draw/events.h
    kStartNs,   // wall time
    kDurationNs,
    kScheduledNs,
    kThreadId,
    kCorrelationId,
    kName,  // the longest name of the node
    kOp,
    kNumBytes,
    kCopyKind,
    kFrom,
    kTo,
    kRegisters,
    kSharedBytes,
    kStaticSharedBytes,
    kDynamicSharedBytes,
    kGridX,
    kGridY,
    kGridZ,
    kBlockX,
    kBlockY,
    kBlockZ,
    kTable,     // Activity.Kind of a node with columns
    kTableRow,  // its row in that table
    kColumns
  };
  static constexpr int64_t kAbsent = -1;

  // A device whose nodes are among the activities.
  struct ReadDevice {
    std::string_view name;
    DeviceName parts;
  };

  std::array<std::vector<int64_t>, kColumns> columns;
  NameTable texts;
  std::vector<ReadDevice> devices;
  std::vector<ThreadName> thread_names;  // of all devices
  uint64_t num_untimed = 0;              // nodes without a possible time
  uint64_t num_unlabelled = 0;           // nodes whose content is in columns of a table that is not read
};

// The contents of the name and label of a node of a GPU.
struct LabelledGpuWork {
  TableKind kind = TableKind::kKernel;  // a kernel, copy or memset
  int64_t num_bytes = -1;               // -1: unknown
  std::string_view copy_kind;           // "HtoD"; empty: unknown
  std::string_view from;                // "Pageable"
  std::string_view to;
  int64_t src_device = -1;  // -1: unknown
  int64_t dst_device = -1;
  int64_t num_blocks = 0;  // in the grid; 0: unknown
};

LabelledGpuWork read_gpu_label(std::string_view name, std::string_view label);

// Each activity of a GPU once, and the nodes of all other devices. The columns of nodes are appended to the tables of
// `typed`, with wall times. Throws WireError. The views refer to the step.
LabelledActivities read_labelled_activities(const StepStats& step, TypedRows& typed);

// The names of the columns, in the order of `Column`.
std::vector<std::string_view> labelled_column_names();

}  // namespace collector::stepstats
