#include "stepstats/labels.h"

namespace collector::convert {

OpLabel ParseOpLabel(std::string_view label) {
  constexpr auto npos = std::string_view::npos;
  // The pattern is `(.*) = (.*)\((.*)\)`, greedy, from the start, within the first line: each part reaches as far right
  // as the ones after it allow.
  const std::string_view line = label.substr(0, label.find('\n'));
  const size_t close = line.rfind(')');
  if (close == npos || close == 0) return {};
  const size_t open = line.rfind('(', close - 1);
  if (open == npos || open < 3) return {};
  const size_t equals = line.rfind(" = ", open - 3);
  if (equals == npos) return {};
  return {line.substr(equals + 3, open - equals - 3), line.substr(open + 1, close - open - 1)};
}

KernelName ParseKernelName(std::string_view label, std::string_view node_name) {
  constexpr auto npos = std::string_view::npos;
  const size_t start = label.find("@@");
  if (start != npos) {
    const size_t end = label.find('#');
    if (end != npos && end > start + 2) node_name = label.substr(start + 2, end - start - 2);
  }
  const size_t colon = node_name.find(':');
  if (colon == npos) return {node_name, "unknown"};
  const std::string_view rest = node_name.substr(colon + 1);
  return {node_name.substr(0, colon), rest.substr(0, rest.find(':'))};
}

bool IsTracerDevice(std::string_view device) { return Contains(device, "/stream:") || Contains(device, "/memcpy"); }

}  // namespace collector::convert
