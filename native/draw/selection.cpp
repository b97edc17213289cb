#include "draw/selection.h"

#include <algorithm>

#include "draw/series.h"

namespace collector::convert {
namespace {

constexpr size_t kSamples = 1001;

}  // namespace

Selection::Selection(const StepStats& step, const TellerOptions& options, Launches* launches)
    : step_(step), options_(options), groups_(MakeGroups(step, options.keep_device)) {
  FindMiddle();
  SurveyNodes(options.arrows && !Selects() ? launches : nullptr);
  if (Selects()) SelectNodes();
}

// The middle of a sample of all starts: robust against nodes without a time and times that wrapped around.
void Selection::FindMiddle() {
  uint64_t num_nodes = 0;
  for (const Group& group : groups_) {
    for (const Device* device : group.parts) num_nodes += device->num_nodes;
  }
  const uint64_t stride = (num_nodes + kSamples - 1) / kSamples;
  std::vector<int64_t> starts;
  uint64_t number = 0;
  Node node;
  for (const Group& group : groups_) {
    for (const Device* device : group.parts) {
      step_.ForEachMessage(*device, [&](std::string_view message) {
        if (number++ % stride != 0) return;
        step_.ReadNode(message, node);
        const Span span = SpanOf(node);
        if (span.valid()) starts.push_back(span.start_ns);
      });
    }
  }
  if (starts.empty()) return;
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
  std::nth_element(starts.begin(), middle, starts.end());
  middle_ns_ = std::clamp(*middle, INT64_MIN + 4 * kFarNs, INT64_MAX - 4 * kFarNs);
}

void Selection::SurveyNodes(Launches* launches) {
  if (options_.base_ns) base_floor_ns_ = *options_.base_ns;
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = INT64_MIN;
  const auto survey = [&](Group& group) {
    Interval last{INT64_MIN, INT64_MAX};
    uint64_t num_drawable = 0;
    uint64_t num_nodes = 0;
    for (const Device* device : group.parts) num_nodes += device->num_nodes;
    ForEachDrawable(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
      ++num_drawable;
      first_ns = std::min(first_ns, span.start_ns);
      last_ns = std::max(last_ns, span.end_ns());
      if (node.thread_id != 0 && !group.name.on_gpu) group.has_threads = true;
      const bool follows =
          span.start_ns > last.start_ns || (span.start_ns == last.start_ns && span.end_ns() <= last.end_ns);
      group.in_order &= group.name.on_gpu ? span.start_ns >= last.start_ns : follows;
      last = {span.start_ns, span.end_ns()};
      has_memory_ |= !node.outputs.empty() || !node.memory.empty();
      has_allocator_memory_ |= !node.memory.empty();
      if (launches != nullptr) NoteLaunch(group, node, span, ordinal, *launches);
    });
    summary_.untimed += num_nodes - num_drawable;
    summary_.slices += num_drawable;
  };
  for (const bool on_gpu : {true, false}) {
    for (Group& group : groups_) {
      if (group.name.on_gpu == on_gpu) survey(group);
    }
  }
  summary_.base_ns = options_.base_ns.value_or(first_ns == INT64_MAX ? 0 : first_ns);
  summary_.end_ns = last_ns == INT64_MIN ? 0 : Relative(last_ns);
}

bool Selection::IsKept(std::string_view name) {
  const auto [number, is_new] = asked_names_.Insert(name);
  if (is_new) keep_name_.push_back(options_.keep_name(name));
  return keep_name_[number];
}

bool Selection::PassesFilters(const Group& group, const Node& node, const Span& span) {
  const int64_t start_ns = Relative(span.start_ns);
  if (span.duration_ns < options_.min_duration_ns || start_ns > options_.window_end_ns ||
      start_ns + span.duration_ns < options_.window_start_ns) {
    return false;
  }
  if (!options_.keep_name) return true;
  group.name.on_gpu ? ReadGpuActivity(node, activity_) : ReadHostActivity(node, activity_);
  return IsKept(activity_.name) || (!activity_.full_name.empty() && IsKept(activity_.full_name));
}

// Counts what the filters keep and finds how long a slice must be to be among the longest.
void Selection::SelectNodes() {
  struct Candidate {
    int64_t duration_ns;
    uint64_t ordinal;
  };
  const bool has_limit = options_.max_slices != UINT64_MAX;
  std::vector<Candidate> candidates;
  uint64_t num_kept = 0;
  for (const Group& group : groups_) {
    ForEachDrawable(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
      if (!PassesFilters(group, node, span)) return;
      ++num_kept;
      if (has_limit) candidates.push_back({span.duration_ns, ordinal});
    });
  }
  summary_.filtered = summary_.slices - num_kept;
  summary_.slices = num_kept;
  if (num_kept <= options_.max_slices) return;
  const auto longer = [](const Candidate& a, const Candidate& b) {
    return a.duration_ns != b.duration_ns ? a.duration_ns > b.duration_ns : a.ordinal < b.ordinal;
  };
  const auto first_out = candidates.begin() + static_cast<std::ptrdiff_t>(options_.max_slices);
  std::nth_element(candidates.begin(), first_out, candidates.end(), longer);
  int64_t all_ns = 0;
  for (auto out = first_out; out != candidates.end(); ++out) {
    if (__builtin_add_overflow(all_ns, out->duration_ns, &all_ns)) all_ns = INT64_MAX;
  }
  summary_.left_out = num_kept - options_.max_slices;
  summary_.left_out_ns = all_ns;
  summary_.longest_left_out_ns = first_out->duration_ns;
  summary_.slices = options_.max_slices;
  limit_ns_ = first_out->duration_ns;
  limit_ordinal_ = first_out->ordinal;
}

// Activities before calls, so that only calls that caused something are remembered.
void Selection::NoteLaunch(const Group& group, const Node& node, const Span& span, uint64_t ordinal,
                           Launches& launches) {
  if (!group.name.on_gpu) {
    if (!launches.empty() && !IsBesideCalls(KindOf(node.activity))) launches.AddCall(node, span, ordinal, group.rank);
  } else if (group.takes_arrows) {
    if (node.correlation_id == 0) ReadGpuActivity(node, activity_);
    launches.AddActivity(node, activity_, group.rank);
  }
}

void Selection::LinkLaunches(Launches& launches) {
  if (Selects()) {  // otherwise the survey has noted all
    for (const bool on_gpu : {true, false}) {
      for (const Group& group : groups_) {
        if (group.name.on_gpu != on_gpu) continue;
        ForEachSelected(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
          NoteLaunch(group, node, span, ordinal, launches);
        });
      }
    }
  }
  launches.Join();
  if (!launches.has_named()) return;
  for (const Group& group : groups_) {
    if (!group.takes_arrows) continue;
    ForEachSelected(group, [&](const Node& node, const Span& span, uint64_t ordinal) {
      if (node.correlation_id != 0) return;
      ReadGpuActivity(node, activity_);
      launches.CountNamed(node, activity_, span, ordinal, group.rank);
    });
  }
  launches.ForgetNames();
}

}  // namespace collector::convert
