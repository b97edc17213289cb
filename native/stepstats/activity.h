// What a node says about itself, taken apart: times, names, kind, details.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "draw/events.h"
#include "stepstats/step_stats.h"
#include "stepstats/typed_activity.h"

namespace collector::convert {

// Wall time. Nodes whose times make no sense have none.
struct Span {
  int64_t start_ns = 0;
  int64_t duration_ns = -1;

  bool valid() const { return duration_ns >= 0; }
  // Of one that is valid; the largest number where it is beyond 64 bits.
  int64_t end_ns() const {
    int64_t end_ns;
    return __builtin_add_overflow(start_ns, duration_ns, &end_ns) ? INT64_MAX : end_ns;
  }
};

// ns where the node has them, else µs. Not valid: the end is before the start, or a number beyond what 64 bits hold.
Span span_of(const Node& node);

// When the host asked for it, in wall ns; 0: not known.
int64_t scheduled_ns_of(const Node& node);

// A key and its value in a label, such as `grid:8,1,1`.
struct Detail {
  std::string_view key;
  std::string_view value;
};

struct Activity {
  static constexpr size_t kMaxDetails = 16;

  std::string_view name;       // "sgemm", "MEMCPYHtoD", "cudaLaunchKernel", "layer1/conv"
  std::string_view full_name;  // of a kernel: "void sgemm<float>(...)"; empty where it says no more than `name`
  std::string_view op;         // of an activity the annotation it was launched under, of a host op its type
  std::string_view inputs;     // of a host op, as written
  Category category = Category::kOther;

  // Of copies and memsets.
  int64_t num_bytes = -1;
  std::string_view copy_kind;  // "HtoD"
  std::string_view from;       // "Pageable"
  std::string_view to;         // "Device"

  // In the label, where there are no columns.
  std::array<Detail, kMaxDetails> details;
  size_t num_details = 0;

  bool is_typed = false;  // what it says is that of its columns
  TypedActivity columns;
};

// Of a node on a device that holds what a GPU did. Where it has columns, these are read, and the label is only for the
// whole name of a kernel of which `names` has none.
void read_gpu_activity(const Node& node, KernelNames& names, Activity& activity);

// Of a node on a host's device.
void read_host_activity(const Node& node, Activity& activity);

}  // namespace collector::convert
