// Determines the part of a step to draw: its time range, the kinds of its nodes, and the nodes that the options select.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "draw/backward_passes.h"
#include "draw/event_waits.h"
#include "draw/events.h"
#include "draw/launches.h"
#include "draw/step_drawing.h"
#include "draw/waits.h"
#include "stepstats/activity.h"
#include "stepstats/groups.h"
#include "stepstats/name_table.h"
#include "stepstats/possible_times.h"
#include "stepstats/step_stats.h"

namespace collector::draw {

using stepstats::kFarNs;
using stepstats::kLargestTimeNs;

class Selection {
 public:
  // The four kinds of arrows.
  struct Links {
    Launches& launches;
    Waits& waits;
    EventWaits& event_waits;
    BackwardPasses& backward_passes;
  };

  // Reads the step. Launches and waits are added to `links` during this pass. All arguments must outlive the object.
  Selection(const stepstats::StepStats& step, const DrawingOptions& options, Links* links);

  // Connects the launches and waits of which both ends are drawn.
  void link(Links& links);

  const Summary& summary() const { return summary_; }
  const std::vector<stepstats::Group>& groups() const { return groups_; }
  // Whether nodes contain allocators' memory, recorded or estimated.
  bool has_memory() const { return has_memory_; }
  bool has_allocator_memory() const { return has_allocator_memory_; }

  // Converts wall time to time since the drawing's base.
  int64_t relative(int64_t wall_ns) const { return wall_ns - summary_.base_ns; }
  int64_t shifted(int64_t wall_ns) const {
    int64_t shifted_ns;
    if (!__builtin_add_overflow(wall_ns, options_.shift_ns, &shifted_ns)) return shifted_ns;
    return options_.shift_ns < 0 ? INT64_MIN + kFarNs : INT64_MAX - kFarNs;
  }
  // A time of the window, which counts from the window's origin, since the drawing's base.
  int64_t window_time(int64_t since_origin_ns) const {
    int64_t shift_ns;
    int64_t time_ns;
    const int64_t origin_ns = options_.window_origin_ns.value_or(summary_.base_ns);
    if (!__builtin_sub_overflow(origin_ns, summary_.base_ns, &shift_ns) &&
        !__builtin_add_overflow(since_origin_ns, shift_ns, &time_ns)) {
      return time_ns;
    }
    return since_origin_ns < 0 ? INT64_MIN : INT64_MAX;
  }
  bool is_plausible(int64_t wall_ns) const { return times_.is_plausible(wall_ns); }
  bool can_draw_at(int64_t wall_ns) const { return is_plausible(wall_ns) && shifted(wall_ns) >= base_floor_ns_; }

  // Whether the span can be drawn. Shifts the span.
  bool can_draw(stepstats::Span& span) const {
    if (!times_.has(span)) return false;
    span.start_ns = shifted(span.start_ns);
    return span.start_ns >= base_floor_ns_ &&
           (!options_.base_ns || span.end_ns() - *options_.base_ns <= kLargestTimeNs);
  }
  // Gives a node the activity that its twin on another device contains.
  static void find_activity(const stepstats::Group& group, uint64_t ordinal, stepstats::Node& node) {
    if (!group.activities.empty()) node.activity = group.activities[ordinal - group.first_ordinal];
  }
  // Whether a drawable node is selected by the options.
  bool is_selected(const stepstats::Group& group, const stepstats::Node& node, const stepstats::Span& span,
                   uint64_t ordinal) {
    if (!selects()) return true;
    if (!passes_filters(group, node, span)) return false;
    return span.duration_ns > limit_ns_ || (span.duration_ns == limit_ns_ && ordinal < limit_ordinal_);
  }
  // Calls visit(node, span, ordinal) for each drawn node of a group, in the order of the message.
  template <typename Visit>
  void for_each_selected(const stepstats::Group& group, Visit visit) {
    for_each_drawable(group, [&](const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal) {
      if (is_selected(group, node, span, ordinal)) visit(node, span, ordinal);
    });
  }

 private:
  size_t num_activities() const;
  void survey_nodes(Links* links);
  static bool note_process(stepstats::Group& group, const stepstats::Node& node);
  // Calls visit(group) for all groups, in the order in which launches and waits must be added.
  template <typename Visit>
  void for_each_group_to_link(Visit visit);
  void filter(const stepstats::Group& group, const stepstats::Node& node, const stepstats::Span& span,
              uint64_t ordinal);
  void apply_limit();
  void note(const stepstats::Group& group, const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal,
            Links& links);
  void link_launches(Launches& launches);
  bool passes_filters(const stepstats::Group& group, const stepstats::Node& node, const stepstats::Span& span);
  bool is_kept(std::string_view name);

  bool selects() const {
    return options_.keep_name != nullptr || options_.min_duration_ns > 0 || options_.max_slices != UINT64_MAX ||
           has_window();
  }
  bool has_window() const { return options_.window_start_ns != INT64_MIN || options_.window_end_ns != INT64_MAX; }

  template <typename Visit>
  void for_each_drawable(const stepstats::Group& group, Visit visit) {
    uint64_t ordinal = group.first_ordinal;
    for (const stepstats::Device* device : group.parts) {
      step_.for_each_node(*device, [&](stepstats::Node& node) {
        const uint64_t this_ordinal = ordinal++;
        stepstats::Span span = span_of(node);
        if (!can_draw(span)) return;
        find_activity(group, this_ordinal, node);
        visit(node, span, this_ordinal);
      });
    }
  }

  const stepstats::StepStats& step_;
  const DrawingOptions& options_;
  Summary summary_;
  std::vector<stepstats::Group> groups_;
  stepstats::PossibleTimes times_;
  int64_t base_floor_ns_ = INT64_MIN;
  bool has_memory_ = false;
  bool has_allocator_memory_ = false;
  stepstats::Activity activity_;  // of the current node

  stepstats::NameTable asked_names_;
  std::vector<bool> keep_name_;
  struct Candidate {
    int64_t duration_ns;
    uint64_t ordinal;
  };
  uint64_t num_passing_ = 0;           // nodes that pass the filters,
  std::vector<Candidate> candidates_;  // which are the nodes among which a limit selects
  int64_t limit_ns_ = -1;              // slices must be longer than this,
  uint64_t limit_ordinal_ = 0;         // or equally long with a smaller ordinal
};

}  // namespace collector::draw
