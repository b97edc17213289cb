// What the nodes of a step say in their names and labels, as columns: of files that have nothing better.
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

namespace collector::convert {

struct LabelledActivities {
  // Numbers of each activity. A text is its place in `texts`; kAbsent is what the node does not say.
  enum Column : uint8_t {
    kDevice,    // place in `devices`
    kCategory,  // as in draw/events.h
    kStartNs,   // wall time
    kDurationNs,
    kScheduledNs,
    kThreadId,
    kCorrelationId,
    kName,  // the longest that the node has
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
  uint64_t num_untimed = 0;
};

// What a node of a GPU says in its name and label.
struct LabelledGpuWork {
  TableKind kind = TableKind::kKernel;  // a kernel, copy or memset
  int64_t num_bytes = -1;               // -1: not known
  std::string_view copy_kind;           // "HtoD"; empty: not known
  std::string_view from;                // "Pageable"
  std::string_view to;
  int64_t src_device = -1;  // -1: not known
  int64_t dst_device = -1;
  int64_t num_blocks = 0;  // of the grid; 0: not known
};

LabelledGpuWork read_gpu_label(std::string_view name, std::string_view label);

// Each activity of a GPU once, and the nodes of all other devices. Throws WireError. The views are into the step.
LabelledActivities read_labelled_activities(const StepStats& step);

// Their names, in the order of `Column`.
std::vector<std::string_view> labelled_column_names();

}  // namespace collector::convert
