#include "write/merged_trace.h"

#include <utility>

namespace collector::write {

MergedTrace::MergedTrace(std::unique_ptr<TraceWriter> writer, draw::TrackOrder order)
    : writer_(std::move(writer)), merged_(*writer_, std::move(order)) {}

MergedTrace::Drawn MergedTrace::add(const stepstats::StepStats& step, draw::DrawingOptions options, int64_t start_ns,
                                    std::string_view owner) {
  const draw::Summary before = merged_.total();
  if (has_steps_) {
    options.first_counter_id = before.next_counter_id;
    options.first_flow_id = before.next_flow_id;
  }
  has_steps_ = true;
  merged_.start_step(start_ns + options.shift_ns - options.base_ns.value_or(0), owner);
  draw_step(step, options, merged_);
  return {merged_.total().slices - before.slices, merged_.total().untimed - before.untimed};
}

void MergedTrace::finish(std::string_view about) {
  merged_.finish();
  writer_->finish(about);
}

}  // namespace collector::write
