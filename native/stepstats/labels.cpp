#include "stepstats/labels.h"

#include <cstring>

namespace collector::stepstats {
namespace {

constexpr auto kNpos = std::string_view::npos;

// The last position of `letter` in the first `size` bytes. std::string_view would search byte by byte.
size_t find_last(std::string_view text, size_t size, char letter) {
  if (size == 0) return kNpos;  // the data of an empty text may be null
  const void* const at = memrchr(text.data(), letter, size);
  return at == nullptr ? kNpos : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

}  // namespace

OpLabel parse_op_label(std::string_view label) {
  // The pattern is `(.*) = (.*)\((.*)\)`, greedy, anchored at the start, within the first line: each part extends as
  // far to the right as the following parts allow.
  const std::string_view line = label.substr(0, label.find('\n'));
  const size_t close = find_last(line, line.size(), ')');
  if (close == kNpos) return {};
  const size_t open = find_last(line, close, '(');
  if (open == kNpos) return {};
  size_t equals = open;
  do {
    equals = find_last(line, equals, '=');
    if (equals == kNpos || equals == 0) return {};
  } while (line[equals - 1] != ' ' || line[equals + 1] != ' ');
  return {line.substr(equals + 2, open - equals - 2), line.substr(open + 1, close - open - 1)};
}

KernelName parse_kernel_name(std::string_view label, std::string_view node_name) {
  const size_t start = label.find("@@");
  if (start != kNpos) {
    const size_t end = label.find('#');
    if (end != kNpos && end > start + 2) node_name = label.substr(start + 2, end - start - 2);
  }
  const size_t colon = node_name.find(':');
  if (colon == kNpos) return {node_name, "unknown"};
  const std::string_view rest = node_name.substr(colon + 1);
  return {node_name.substr(0, colon), rest.substr(0, rest.find(':'))};
}

bool is_tracer_device(std::string_view device) { return contains(device, "/stream:") || contains(device, "/memcpy"); }

}  // namespace collector::stepstats
