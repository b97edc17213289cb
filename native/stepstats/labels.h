// What node names and labels say. Byte for byte what the regular expressions and splits of collector/timeline do.
#pragma once

#include <string_view>

namespace collector::convert {

// The parts of `[memory] name = Op(in1, in2)`. A label that is not of this form has the op "unknown" and no inputs.
struct OpLabel {
  std::string_view op = "unknown";
  std::string_view inputs;  // as written: names with ", " between; empty: none
};
OpLabel parse_op_label(std::string_view label);

// Calls visit(input) for each of OpLabel::inputs.
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

// Name and op of a kernel or copy: "name:op", from `@@name:op#` in the label where there is one.
struct KernelName {
  std::string_view name;
  std::string_view op;
};
KernelName parse_kernel_name(std::string_view label, std::string_view node_name);

// Whether a device holds what a GPU did rather than ops of the host.
bool is_tracer_device(std::string_view device);

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace collector::convert
