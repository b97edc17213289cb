// Draws the timeline of a step: calls a TraceVisitor for all that there is to see, whatever the file format.
//
// Wire bytes are read several times rather than kept: once to see where the time axis begins and who launched what,
// once to draw. What is remembered grows only with the number of launches (for the arrows), of gaps between activities
// on streams and of copies (for the counters), and with the nodes of a device whose nodes are not in order of time.
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
#include "stepstats/step_stats.h"

namespace collector::convert {

// Something about the whole step that the picture should show.
struct Remark {
  std::string name;
  std::string details;
  std::optional<int64_t> wall_ns;  // none: at the end
};

struct DrawingOptions {
  // What to draw. Counters count what is drawn; without them where `max_slices` leaves something out.
  std::function<bool(std::string_view device)> keep_device;  // asked once for each device; none: all
  std::function<bool(std::string_view name)> keep_name;      // asked once for each short or whole name; either will do
  int64_t min_duration_ns = 0;
  int64_t window_start_ns = std::numeric_limits<int64_t>::min();  // since the base; what overlaps is drawn
  int64_t window_end_ns = std::numeric_limits<int64_t>::max();
  uint64_t max_slices = std::numeric_limits<uint64_t>::max();  // the longest; of equals the first in the message
  bool arrows = true;
  bool counters = true;
  std::vector<Remark> remarks;
  // Of what a device without its prefix is: of "/gpu:0" for its process, of "/gpu:0/stream:9" for its track.
  std::unordered_map<std::string, std::string> labels;
  std::vector<EventRecord> event_records;

  // Where to draw it.
  std::optional<int64_t> base_ns;  // wall time of time 0; none: the earliest start
  int64_t shift_ns = 0;            // added to every time of the step, before the base is taken away
  std::string process_label;
  uint32_t first_counter_id = 1;
  uint64_t first_flow_id = 1;
};

// Throws WireError. The step's bytes must outlive the call; visitor and callables may throw anything.
Summary draw_step(const StepStats& step, const DrawingOptions& options, TraceVisitor& visitor);

// What on_begin would be given: where the step lies in time and how much of it would be drawn.
Summary survey(const StepStats& step, const DrawingOptions& options);

}  // namespace collector::convert
