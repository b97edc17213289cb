// The contents of one node as values: times, names, kind, details.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "stepstats/category.h"
#include "stepstats/step_stats.h"
#include "stepstats/typed_activity.h"

namespace collector::stepstats {

// A span of wall time. Nodes with impossible times have an invalid span.
struct Span {
  int64_t start_ns = 0;
  int64_t duration_ns = -1;

  bool valid() const { return duration_ns >= 0; }
  // The end of a valid span, limited to the largest 64-bit number.
  int64_t end_ns() const {
    int64_t end_ns;
    return __builtin_add_overflow(start_ns, duration_ns, &end_ns) ? INT64_MAX : end_ns;
  }
};

// In ns if the node has them, else in µs. Invalid if the end is before the start or a number exceeds 64 bits. An absent
// field is 0, which is a possible start: times of some files count from their begin.
Span span_of(const Node& node);

// The time when the host scheduled the node, in wall ns; 0 if unknown.
int64_t scheduled_ns_of(const Node& node);

// A key and its value in a label, such as `grid:8,1,1`.
struct Detail {
  std::string_view key;
  std::string_view value;
};

struct Activity {
  static constexpr size_t kMaxDetails = 16;

  std::string_view name;       // "sgemm", "MEMCPYHtoD", "cudaLaunchKernel", "layer1/conv"
  std::string_view full_name;  // of a kernel: "void sgemm<float>(...)"; empty if it adds nothing to `name`
  bool is_unnamed = false;     // a kernel without a name, which is displayed as `name`
  std::string_view op;         // of GPU work, the annotation around its launch; of a host op, its type
  std::string_view inputs;     // of a host op, in the form of the label
  Category category = Category::kOther;

  // Only of copies and memsets.
  int64_t num_bytes = -1;
  std::string_view copy_kind;  // "HtoD"
  std::string_view from;       // "Pageable"
  std::string_view to;         // "Device"

  // From the label, if the node has no columns.
  std::array<Detail, kMaxDetails> details;
  size_t num_details = 0;

  bool is_typed = false;  // whether the values come from columns
  TypedActivity columns;
};

// Reads a node of a device with GPU work. If the node has columns, they are used, and the label only provides the whole
// name of a kernel that `names` does not contain.
void read_gpu_activity(const Node& node, KernelNames& names, Activity& activity);

// Reads a node of a host's device.
void read_host_activity(const Node& node, Activity& activity);

}  // namespace collector::stepstats
