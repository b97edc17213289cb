#include "draw/backward_passes.h"

#include <algorithm>
#include <string_view>

#include "stepstats/typed_activity.h"

namespace collector::draw {

using stepstats::ActivityField;
using stepstats::Node;
using stepstats::Span;
using stepstats::TableKind;
using stepstats::TypedActivity;

namespace {

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Whether the range is one around a node of the backward pass. In names of nodes a colon is a point.
bool is_of_backward_pass(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (begins_with(name, "autograd.engine.evaluate_function. ") || begins_with(name, "torch.autograd.")) return true;
  return name.find("Backward") != std::string_view::npos && name.find('.') == std::string_view::npos;
}

}  // namespace

void BackwardPasses::add_annotation(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank) {
  constexpr std::string_view kTag = "\xb0\x04";  // of op_sequence, which few annotations have
  if (node.activity.find(kTag) == std::string_view::npos) return;
  TypedActivity activity;
  activity.read(node.activity);
  if (activity.kind() != TableKind::kAnnotation || activity[ActivityField::kOpSequence] <= 0) return;
  ranges_[{rank, activity[ActivityField::kOpSequence]}].push_back(
      {span.start_ns, span.end_ns(), ordinal, node.thread_id, is_of_backward_pass(node.name)});
}

void BackwardPasses::link(uint64_t& next_flow_id) {
  for (auto& numbered : ranges_) {
    std::vector<Range>& ranges = numbered.second;
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    const Range* op = nullptr;
    bool is_of_one_thread = true;  // each thread numbers its ops from 0 on
    int64_t backward_end_ns = INT64_MIN;
    for (const Range& range : ranges) {
      if (!range.is_backward) {
        is_of_one_thread = is_of_one_thread && (op == nullptr || op->thread_id == range.thread_id);
        op = &range;
      } else if (range.start_ns >= backward_end_ns) {  // not inside another range of the same pass
        backward_end_ns = range.end_ns;
        if (op != nullptr && is_of_one_thread) arrows_.add(op->ordinal, range.ordinal);
      }
    }
  }
  arrows_.number(next_flow_id);
}

}  // namespace collector::draw
