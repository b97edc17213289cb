// Parses node names and labels, with exactly the results of the regular expressions and splits of collector/timeline.
#pragma once

#include <string_view>

namespace collector::stepstats {

// The parts of `[memory] name = Op(in1, in2)`. A label of another form has the op "unknown" and no inputs.
struct OpLabel {
  std::string_view op = "unknown";
  std::string_view inputs;  // in the form of the label: names separated by ", "; may be empty
};
OpLabel parse_op_label(std::string_view label);

// Calls visit(input) for each input in OpLabel::inputs.
template <typename Visit>
void for_each_input(std::string_view inputs, Visit visit) {
  if (inputs.empty()) return;
  for (;;) {
    const size_t comma = inputs.find(", ");
    visit(inputs.substr(0, comma));
    if (comma == std::string_view::npos) return;
    inputs.remove_prefix(comma + 2);
  }
}

// Name and op of a kernel or copy: "name:op", taken from `@@name:op#` in the label if it contains that.
struct KernelName {
  std::string_view name;
  std::string_view op;
};
KernelName parse_kernel_name(std::string_view label, std::string_view node_name);

// Whether a device holds GPU work, as opposed to the host's ops.
bool is_tracer_device(std::string_view device);

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace collector::stepstats
