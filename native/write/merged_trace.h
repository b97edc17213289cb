// A file into which several steps are drawn, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "draw/merge_visitor.h"
#include "draw/step_drawing.h"
#include "draw/track_order.h"
#include "stepstats/step_stats.h"
#include "write/trace_writer.h"

namespace collector::write {

class MergedTrace {
 public:
  // `order` must contain every owner and device that will be added.
  MergedTrace(std::unique_ptr<TraceWriter> writer, draw::TrackOrder order);

  struct Drawn {
    uint64_t slices;
    uint64_t untimed;  // nodes without a possible time
  };
  // Draws a step that begins at `start_ns` of the wall clock, before `options.shift_ns`. `options.base_ns` is the
  // file's time 0, the same for all steps. Arrows and counters have numbers that follow those of the steps before.
  Drawn add(const stepstats::StepStats& step, draw::DrawingOptions options, int64_t start_ns, std::string_view owner);

  void mark(const draw::Instant& instant) { merged_.on_instant(instant); }

  // Writes what is left; `about` describes the file. Must be called once, at the end.
  void finish(std::string_view about);

 private:
  std::unique_ptr<TraceWriter> writer_;
  draw::MergeVisitor merged_;
  bool has_steps_ = false;
};

}  // namespace collector::write
