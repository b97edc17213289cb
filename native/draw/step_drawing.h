// Draws the timeline of a step: passes all visible events to a TraceVisitor, whatever the file format.
//
// Wire bytes are read several times instead of being stored: once to find the start of the time axis and the launches,
// and once to draw. Memory grows only with the number of launches (for the arrows), of gaps between activities on
// streams and of copies (for the counters), and with the nodes of devices whose nodes are not sorted by time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "draw/event_records.h"
#include "draw/events.h"
#include "draw/op_details.h"
#include "draw/series.h"
#include "stepstats/activity.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

// Values of a figure of a device, each from a wall time on.
struct SampledCounter {
  std::string device;  // without prefix: "/gpu:0"
  std::string name;
  std::string unit;  // empty: none
  std::vector<Point> samples;
};

// A remark about the whole step that the drawing shows.
struct Remark {
  std::string name;
  std::string details;
  std::optional<int64_t> wall_ns;  // no value: at the end
};

struct DrawingOptions {
  // The nodes to draw. Counters cover the drawn nodes; there are none if `max_slices` leaves nodes out.
  std::function<bool(std::string_view device)> keep_device;  // called once per device; none: all devices
  std::function<bool(std::string_view name)> keep_name;      // called once per short or whole name; one match is enough
  int64_t min_duration_ns = 0;
  int64_t window_start_ns = std::numeric_limits<int64_t>::min();  // since the origin; overlapping slices are drawn
  int64_t window_end_ns = std::numeric_limits<int64_t>::max();
  std::optional<int64_t> window_origin_ns;                     // wall time; no value: the base
  uint64_t max_slices = std::numeric_limits<uint64_t>::max();  // the longest; of equal ones the first
  bool arrows = true;
  bool counters = true;
  std::vector<Remark> remarks;
  // Labels by device without prefix: that of "/gpu:0" belongs to its process, that of "/gpu:0/stream:9" to its track.
  std::unordered_map<std::string, std::string> labels;
  std::unordered_map<uint32_t, uint32_t> thread_processes;  // of threads whose calls the step may lack
  std::vector<EventRecord> event_records;
  OpDetails op_details;
  std::vector<SampledCounter> sampled;
  OpDetails collectives;  // of their kernels, by start and correlation id; without durations
  OpDetails call_ops;     // of calls that launched no work, by correlation id; without durations and threads

  // The position of the drawing.
  std::optional<int64_t> base_ns;  // wall time of time 0; no value: the earliest start
  int64_t shift_ns = 0;            // added to every time of the step, before the base is subtracted
  std::string process_label;
  uint32_t first_counter_id = 1;
  uint64_t first_flow_id = 1;
  int64_t added_to_correlations = 0;  // so that steps on the same tracks do not share ids that they count by themselves
};

// Throws WireError. The step's bytes must outlive the call; the visitor and the callables may throw anything.
Summary draw_step(const stepstats::StepStats& step, const DrawingOptions& options, TraceVisitor& visitor);

// The summary that on_begin would get: the step's time range, and the amount that would be drawn.
Summary survey(const stepstats::StepStats& step, const DrawingOptions& options);

// The times of all nodes by device, in the order of the message; those of nodes that cannot be drawn are invalid.
std::vector<std::vector<stepstats::Span>> drawable_times(const stepstats::StepStats& step);

}  // namespace collector::draw
