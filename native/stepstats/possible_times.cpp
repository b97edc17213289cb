#include "stepstats/possible_times.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace collector::stepstats {
namespace {

constexpr size_t kSamples = 1001;

}  // namespace

PossibleTimes::PossibleTimes(const StepStats& step, const std::vector<Group>& groups) {
  uint64_t num_nodes = 0;
  for (const Group& group : groups) {
    for (const Device* device : group.parts) num_nodes += device->num_nodes;
  }
  const uint64_t stride = (num_nodes + kSamples - 1) / kSamples;
  std::vector<int64_t> starts;
  uint64_t number = 0;
  Node node;
  for (const Group& group : groups) {
    for (const Device* device : group.parts) {
      step.for_each_message(*device, [&](std::string_view message) {
        if (number++ % stride != 0) return;
        step.read_node(message, node);
        const Span span = span_of(node);
        if (span.valid()) starts.push_back(span.start_ns);
      });
    }
  }
  if (starts.empty()) return;
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
  std::nth_element(starts.begin(), middle, starts.end());
  middle_ns_ = std::clamp(*middle, INT64_MIN + 4 * kFarNs, INT64_MAX - 4 * kFarNs);
}

}  // namespace collector::stepstats
