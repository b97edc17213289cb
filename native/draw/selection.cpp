#include "draw/selection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "draw/series.h"

namespace collector::draw {

using stepstats::Device;
using stepstats::Group;
using stepstats::Node;
using stepstats::Span;
using stepstats::StepStats;

Selection::Selection(const StepStats& step, const DrawingOptions& options, Links* links)
    : step_(step), options_(options), groups_(make_groups(step, options.keep_device)), times_(step, groups_) {
  survey_nodes(options.arrows && !selects() ? links : nullptr);
  if (selects()) apply_limit();
}

// The nodes at which arrows from calls may end.
size_t Selection::num_activities() const {
  size_t number = 0;
  for (const Group& group : groups_) {
    if (!group.takes_arrows) continue;
    for (const Device* device : group.parts) number += device->num_nodes;
  }
  return number;
}

// Waits are visited before activities and activities before calls: only activities that were waited for are stored, and
// only calls that launched one.
template <typename Visit>
void Selection::for_each_group_to_link(Visit visit) {
  const auto turn_of = [](const Group& group) { return holds_waits(group) ? 0 : group.name.on_gpu ? 1 : 2; };
  for (const int turn : {0, 1, 2}) {
    for (Group& group : groups_) {
      if (turn_of(group) == turn) visit(group);
    }
  }
}

void Selection::survey_nodes(Links* links) {
  if (options_.base_ns) {
    base_floor_ns_ = *options_.base_ns;
    summary_.base_ns = *options_.base_ns;
  }
  // A window without an origin counts from the base, which without an option is known only after the survey.
  const bool filters_now = selects() && (options_.window_origin_ns || options_.base_ns || !has_window());
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = INT64_MIN;
  if (links != nullptr) links->launches.expect_activities(num_activities());
  const auto survey = [&](Group& group) {
    Interval last{INT64_MIN, INT64_MAX};
    uint64_t num_drawable = 0;
    uint64_t num_nodes = 0;
    std::optional<uint32_t> noted_thread;  // the last one whose process is noted
    for (const Device* device : group.parts) num_nodes += device->num_nodes;
    if (links != nullptr) links->waits.begin_stream(group);
    for_each_drawable(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
      ++num_drawable;
      first_ns = std::min(first_ns, span.start_ns);
      last_ns = std::max(last_ns, span.end_ns());
      if (!group.name.on_gpu) {
        group.has_threads |= node.thread_id != 0;
        if (node.thread_id != noted_thread && note_process(group, node)) noted_thread = node.thread_id;
      }
      const bool follows =
          span.start_ns > last.start_ns || (span.start_ns == last.start_ns && span.end_ns() <= last.end_ns);
      group.in_order &= group.name.on_gpu ? span.start_ns >= last.start_ns : follows;
      last = {span.start_ns, span.end_ns()};
      has_memory_ |= !node.outputs.empty() || !node.memory.empty();
      has_allocator_memory_ |= !node.memory.empty();
      if (links != nullptr) note(group, node, span, ordinal, *links);
      if (filters_now) filter(group, node, span, ordinal);
    });
    summary_.untimed += num_nodes - num_drawable;
    summary_.slices += num_drawable;
  };
  for_each_group_to_link(survey);
  summary_.base_ns = options_.base_ns.value_or(first_ns == INT64_MAX ? 0 : first_ns);
  summary_.end_ns = last_ns == INT64_MIN ? 0 : relative(last_ns);
  if (selects() && !filters_now) {
    for (const Group& group : groups_) {
      for_each_drawable(
          group, [&](const Node& node, const Span& span, uint64_t ordinal) { filter(group, node, span, ordinal); });
    }
  }
}

// Notes the process of a call as that of its thread, unless an earlier call stated one; whether the node is a call.
bool Selection::note_process(Group& group, const Node& node) {
  if (stepstats::kind_of(node.activity) != stepstats::TableKind::kApiCall) return false;
  const auto [process, is_first] = group.processes.try_emplace(node.thread_id, 0);
  if (!is_first) return true;
  stepstats::TypedActivity call;
  call.read(node.activity);
  process->second = static_cast<uint32_t>(call[stepstats::ActivityField::kProcessId]);
  return true;
}

bool Selection::is_kept(std::string_view name) {
  const auto [number, is_new] = asked_names_.insert(name);
  if (is_new) keep_name_.push_back(options_.keep_name(name));
  return keep_name_[number];
}

bool Selection::passes_filters(const Group& group, const Node& node, const Span& span) {
  int64_t start_ns;
  if (__builtin_sub_overflow(span.start_ns, options_.window_origin_ns.value_or(summary_.base_ns), &start_ns)) {
    start_ns = span.start_ns < 0 ? INT64_MIN + kFarNs : INT64_MAX - kFarNs;
  }
  if (span.duration_ns < options_.min_duration_ns || start_ns > options_.window_end_ns ||
      start_ns + span.duration_ns < options_.window_start_ns) {
    return false;
  }
  if (!options_.keep_name) return true;
  group.name.on_gpu ? read_gpu_activity(node, step_.kernel_names(), activity_) : read_host_activity(node, activity_);
  return is_kept(activity_.name) || (!activity_.full_name.empty() && is_kept(activity_.full_name));
}

void Selection::filter(const Group& group, const Node& node, const Span& span, uint64_t ordinal) {
  if (!passes_filters(group, node, span)) return;
  ++num_passing_;
  if (options_.max_slices != UINT64_MAX) candidates_.push_back({span.duration_ns, ordinal});
}

// Finds the minimum length of the longest slices to draw, of those that pass the filters.
void Selection::apply_limit() {
  summary_.filtered = summary_.slices - num_passing_;
  summary_.slices = num_passing_;
  std::vector<Candidate> candidates = std::move(candidates_);
  if (num_passing_ <= options_.max_slices) return;
  const auto longer = [](const Candidate& a, const Candidate& b) {
    return a.duration_ns != b.duration_ns ? a.duration_ns > b.duration_ns : a.ordinal < b.ordinal;
  };
  const auto first_out = candidates.begin() + static_cast<std::ptrdiff_t>(options_.max_slices);
  std::nth_element(candidates.begin(), first_out, candidates.end(), longer);
  int64_t all_ns = 0;
  for (auto out = first_out; out != candidates.end(); ++out) {
    if (__builtin_add_overflow(all_ns, out->duration_ns, &all_ns)) all_ns = INT64_MAX;
  }
  summary_.left_out = num_passing_ - options_.max_slices;
  summary_.left_out_ns = all_ns;
  summary_.longest_left_out_ns = first_out->duration_ns;
  summary_.slices = options_.max_slices;
  limit_ns_ = first_out->duration_ns;
  limit_ordinal_ = first_out->ordinal;
}

void Selection::note(const Group& group, const Node& node, const Span& span, uint64_t ordinal, Links& links) {
  if (holds_waits(group)) {
    links.waits.add_wait(node, span, ordinal, group.rank);
    links.event_waits.add_wait(node, span, ordinal, group.rank);
  }
  if (!group.name.on_gpu) {
    links.backward_passes.add_annotation(node, span, ordinal, group.rank);
    if (!links.event_waits.empty()) links.event_waits.add_call(node, span, ordinal, group.rank);
    if (!links.launches.empty() && !stepstats::is_beside_calls(stepstats::kind_of(node.activity))) {
      links.launches.add_call(node, span, ordinal, group.rank);
    }
  } else if (group.takes_arrows) {
    if (node.correlation_id == 0) read_gpu_activity(node, step_.kernel_names(), activity_);
    links.launches.add_activity(node, activity_, group.rank);
    links.waits.add_activity(node, span, ordinal);
  }
}

void Selection::link(Links& links) {
  if (selects()) {  // otherwise the survey has collected them all
    for_each_group_to_link([&](const Group& group) {
      links.waits.begin_stream(group);
      for_each_selected(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
        note(group, node, span, ordinal, links);
      });
    });
  }
  link_launches(links.launches);
}

void Selection::link_launches(Launches& launches) {
  launches.join();
  if (!launches.has_named()) return;
  for (const Group& group : groups_) {
    if (!group.takes_arrows) continue;
    for_each_selected(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
      if (node.correlation_id != 0) return;
      read_gpu_activity(node, step_.kernel_names(), activity_);
      launches.count_named(node, activity_, span, ordinal, group.rank);
    });
  }
  launches.forget_names();
}

}  // namespace collector::draw
