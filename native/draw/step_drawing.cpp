#include "draw/step_drawing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "draw/backward_passes.h"
#include "draw/event_waits.h"
#include "draw/label_arguments.h"
#include "draw/lanes.h"
#include "draw/launches.h"
#include "draw/memory_changes.h"
#include "draw/repeated_labels.h"
#include "draw/selection.h"
#include "draw/series.h"
#include "draw/track_order.h"
#include "draw/typed_arguments.h"
#include "draw/waits.h"
#include "stepstats/activity.h"
#include "stepstats/groups.h"
#include "stepstats/labels.h"
#include "stepstats/name_table.h"

namespace collector::draw {

using stepstats::Activity;
using stepstats::Category;
using stepstats::Device;
using stepstats::DeviceKind;
using stepstats::Group;
using stepstats::NameTable;
using stepstats::Node;
using stepstats::Span;
using stepstats::StepStats;
using stepstats::TableKind;
using stepstats::ThreadName;

namespace {

// Arguments that do not come from a node's label.
constexpr std::string_view kCorrelation = "correlation";
constexpr std::string_view kWaited = "waited_ns";
constexpr std::string_view kUnnamed = "unnamed";
// Of calls of another process than that of their thread's row: threads of two containers may have one number.
constexpr std::string_view kProcess = "process";
// Arguments of a graph's nodes.
constexpr std::string_view kGraphNode = "graph_node";
// Arguments of calls that record a CUDA event.
constexpr std::string_view kEventKey = "event";
constexpr std::string_view kStreamKey = "stream";

bool has_argument(const Description& description, std::string_view key) {
  return std::any_of(description.arguments.begin(), description.arguments.end(),
                     [key](const Argument& argument) { return argument.key == key; });
}

// An annotation in the form that it has as the `op` of `op:kernel`: readers split node names at colons.
std::string without_colons(std::string_view name) {
  std::string op;
  for (const char letter : name) {
    if (letter != ':')
      op.push_back(letter);
    else if (op.empty() || op.back() != '.')
      op.push_back('.');
  }
  return op;
}

// The colour of an NVTX range; 0: none.
uint32_t color_of(const Activity& activity) {
  if (!activity.is_typed) return 0;
  const TableKind kind = activity.columns.kind();
  const bool is_range = kind == TableKind::kAnnotation || kind == TableKind::kNvtxRange;
  return is_range ? static_cast<uint32_t>(activity.columns[stepstats::ActivityField::kColor]) : 0;
}

// The process of a thread's calls; 0: not known.
uint32_t process_of(const Group& group, uint32_t thread_id) {
  const auto found = group.processes.find(thread_id);
  return found == group.processes.end() ? 0 : found->second;
}

// The context of an activity of a stream; no value: it states none.
std::optional<uint32_t> context_of(const Node& node) {
  if (node.activity.empty()) return std::nullopt;
  stepstats::TypedActivity columns;
  columns.read(node.activity);
  return static_cast<uint32_t>(columns[stepstats::ActivityField::kContextId]);
}

// The track with the launches of a GPU's CUDA graphs.
bool shows_graphs(const Group& group) {
  return group.name.on_gpu && group.name.kind == DeviceKind::kOther && group.name.track == "graphs";
}

struct Copy {
  std::string_view kind;
  Interval interval;
  int64_t num_bytes;
};

class StepDrawing {
 public:
  StepDrawing(const StepStats& step, const DrawingOptions& options, TraceVisitor& visitor)
      : step_(step),
        options_(options),
        visitor_(visitor),
        event_records_(options.event_records),
        selection_(step, options, &links_),
        summary_(selection_.summary()),
        order_(order_of(selection_.groups())) {}

  // May be called once.
  Summary draw();

 private:
  // Rows shared by activities that do not overlap.
  struct Rows {
    std::string name;
    uint64_t os_thread_id = 0;
    uint32_t process_id = 0;
    std::optional<uint32_t> context_id;
    bool nests = false;          // whether the first row nests
    std::vector<int64_t> open;   // ends of the open slices of the first row, if it nests
    Lanes lanes;                 // of the other rows, or of all
    std::vector<uint32_t> tids;  // of the rows; 0: not announced yet
  };

  static TrackOrder order_of(const std::vector<Group>& groups);
  // The label of a device or, for a device with all streams of a GPU, of its process. Empty: none.
  std::string_view label_of(const Group& group, std::string_view device) const;

  // The pid of the process with this name, which is announced at its first use.
  uint32_t process_pid(std::string_view name, std::string_view label = {});
  void draw_group(const Group& group);
  void draw_node(const Group& group, const Node& node, const Span& span, uint64_t ordinal);
  void draw_slice(const Group& group, const Node& node, const Span& span, uint64_t ordinal, const Rows& rows,
                  uint32_t tid);
  // A node of a group, to be drawn later.
  struct Reference {
    const Group* group;
    Span span;
    uint64_t ordinal;
    std::string_view message;
    int64_t correlation_id;
    size_t launch;  // of a graph's node: the index of the launch
  };
  // Calls visit(reference) for each drawn node of a group, in the order of the message.
  template <typename Visit>
  void for_each_reference(const Group& group, Visit visit);
  std::vector<Reference> references_of(const Group& group);
  void draw_graphs(const Group& group);
  std::vector<Reference> graph_nodes_of(const Group& group, const std::vector<Reference>& launches);
  void draw_graph_node(const Reference& reference, uint32_t tid);
  uint32_t begin_process(const Group& group);
  Rows& thread_of(const Group& group, uint32_t thread_id);
  uint32_t tid_for(const Group& group, Rows& rows, const Interval& interval);
  Description& describe(const Node& node, bool on_gpu);
  std::string_view host_spelling_of(std::string_view op);
  void add_own_arguments(const Node& node, const Span& span, const Rows& rows, Description& description);
  void add_call_op(const Node& node, Description& description);
  void draw_series(uint32_t pid, std::string_view name, std::string_view unit, const std::vector<Point>& points);
  void draw_memory();
  void draw_counters(const Group& group);
  int64_t time_of(const Remark& remark) const;

  const StepStats& step_;
  const DrawingOptions& options_;
  TraceVisitor& visitor_;
  Launches launches_;
  EventRecords event_records_;
  Waits waits_{event_records_};
  EventWaits event_waits_{event_records_};
  BackwardPasses backward_passes_;
  Selection::Links links_{launches_, waits_, event_waits_, backward_passes_};
  Selection selection_;
  Summary summary_;

  uint64_t next_flow_id_ = 1;

  TrackOrder order_;
  std::set<uint32_t> begun_pids_;
  uint64_t num_planned_ = 0;  // slices that will have been drawn
  uint32_t next_counter_id_ = 0;
  uint32_t pid_ = 0;                            // of the current group; 0: not begun
  Rows rows_;                                   // of a group without threads
  std::unordered_map<uint32_t, Rows> threads_;  // of a group with threads
  std::unordered_map<uint32_t, std::string_view> thread_names_;
  Rows* last_thread_ = nullptr;
  uint32_t last_thread_id_ = 0;
  RepeatedLabels labels_;
  std::unordered_set<uint32_t> calls_with_op_;  // correlation ids of calls whose op a slice states
  std::optional<std::unordered_map<std::string, std::string_view>> names_with_colons_;  // by their form as `op`

  std::vector<std::vector<Interval>> busy_;  // of the streams of the current GPU
  std::vector<Copy> copies_;                 // of the current GPU
};

Summary StepDrawing::draw() {
  const std::vector<Group>& groups = selection_.groups();
  next_counter_id_ = options_.first_counter_id;
  next_flow_id_ = options_.first_flow_id;
  if (options_.arrows) {
    selection_.link(links_);
    waits_.link(next_flow_id_);
    event_waits_.link(next_flow_id_);
    backward_passes_.link(next_flow_id_);
    summary_.flows += next_flow_id_ - options_.first_flow_id;
  }
  visitor_.on_begin(summary_);
  num_planned_ = std::exchange(summary_.slices, 0);
  const bool counts = options_.counters && summary_.left_out == 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const bool first_on_gpu = group.name.on_gpu && (i == 0 || !groups[i - 1].name.on_gpu);
    if (counts && selection_.has_memory() && first_on_gpu) draw_memory();
    draw_group(group);
    const bool last_of_process = i + 1 == groups.size() || groups[i + 1].name.process != group.name.process;
    if (counts && group.name.on_gpu && last_of_process) draw_counters(group);
  }
  if (counts && selection_.has_memory() && (groups.empty() || !groups.back().name.on_gpu)) draw_memory();
  for (const Remark& remark : options_.remarks) {
    visitor_.on_instant({time_of(remark), remark.name, remark.details});
  }
  summary_.next_counter_id = next_counter_id_;
  summary_.next_flow_id = next_flow_id_;
  visitor_.on_end(summary_);
  return summary_;
}

// A remark may have any time, unlike drawn nodes.
int64_t StepDrawing::time_of(const Remark& remark) const {
  if (!remark.wall_ns) return std::min(summary_.end_ns, kLargestTimeNs);
  const int64_t wall_ns = selection_.shifted(*remark.wall_ns);
  int64_t time_ns;
  if (__builtin_sub_overflow(wall_ns, summary_.base_ns, &time_ns))
    return wall_ns < summary_.base_ns ? 0 : kLargestTimeNs;
  return std::clamp<int64_t>(time_ns, 0, kLargestTimeNs);
}

TrackOrder StepDrawing::order_of(const std::vector<Group>& groups) {
  std::vector<std::pair<std::string, std::string>> devices;
  devices.reserve(groups.size() + 1);
  devices.emplace_back("", TrackOrder::kMemory);
  for (const Group& group : groups) devices.emplace_back("", group.device);
  return TrackOrder(devices);
}

std::string_view StepDrawing::label_of(const Group& group, std::string_view device) const {
  if (options_.labels.empty() || !group.name.on_gpu) return {};
  const auto found = options_.labels.find(std::string(device.substr(group.name.prefix.size())));
  return found == options_.labels.end() ? std::string_view() : found->second;
}

uint32_t StepDrawing::process_pid(std::string_view name, std::string_view label) {
  const uint32_t pid = order_.pid_of("", name);
  if (!begun_pids_.insert(pid).second) return pid;
  std::string labels = options_.process_label;
  if (!labels.empty() && !label.empty()) labels.append(", ");
  labels.append(label);
  visitor_.on_process({pid, name, labels});
  return pid;
}

void StepDrawing::draw_group(const Group& group) {
  pid_ = 0;
  rows_ = Rows();
  rows_.name = group.name.track;
  rows_.process_id = process_of(group, 0);
  const std::string_view label = label_of(group, group.device);
  if (!label.empty()) rows_.name.append(" (").append(label).append(")");
  threads_.clear();
  last_thread_ = nullptr;
  thread_names_.clear();
  for (const Device* device : group.parts) {
    for (const ThreadName& thread : device->thread_names) {
      if (!thread.name.empty()) thread_names_[thread.id] = thread.name;
    }
  }
  if (group.name.kind == DeviceKind::kStream) busy_.emplace_back();
  if (shows_graphs(group)) return draw_graphs(group);
  if (group.in_order) {
    selection_.for_each_selected(
        group, [&](const Node& node, const Span& span, uint64_t ordinal) { draw_node(group, node, span, ordinal); });
    return;
  }
  std::vector<Reference> references = references_of(group);
  // On a thread, an enclosing slice comes before the slices inside it.
  const bool longer_first = !group.name.on_gpu;
  std::sort(references.begin(), references.end(), [longer_first](const Reference& a, const Reference& b) {
    if (a.span.start_ns != b.span.start_ns) return a.span.start_ns < b.span.start_ns;
    if (longer_first && a.span.duration_ns != b.span.duration_ns) return a.span.duration_ns > b.span.duration_ns;
    return a.ordinal < b.ordinal;
  });
  Node node;
  for (const Reference& reference : references) {
    step_.read_node(reference.message, node);
    Selection::find_activity(group, reference.ordinal, node);
    draw_node(group, node, reference.span, reference.ordinal);
  }
}

template <typename Visit>
void StepDrawing::for_each_reference(const Group& group, Visit visit) {
  uint64_t next_ordinal = group.first_ordinal;
  Node node;
  for (const Device* device : group.parts) {
    step_.for_each_message(*device, [&](std::string_view message) {
      const uint64_t ordinal = next_ordinal++;
      step_.read_node(message, node);
      Selection::find_activity(group, ordinal, node);
      Span span = span_of(node);
      if (selection_.can_draw(span) && selection_.is_selected(group, node, span, ordinal))
        visit(Reference{&group, span, ordinal, message, node.correlation_id, 0});
    });
  }
}

std::vector<StepDrawing::Reference> StepDrawing::references_of(const Group& group) {
  std::vector<Reference> references;
  for_each_reference(group, [&](const Reference& reference) { references.push_back(reference); });
  return references;
}

// --- graphs ---

// Each launch encloses its nodes. Launches that overlap have rows of their own, and so have nodes that overlap others
// of their launch.
void StepDrawing::draw_graphs(const Group& group) {
  const auto starts_earlier = [](const Reference& a, const Reference& b) {
    if (a.span.start_ns != b.span.start_ns) return a.span.start_ns < b.span.start_ns;
    if (a.span.duration_ns != b.span.duration_ns) return a.span.duration_ns > b.span.duration_ns;
    return a.ordinal < b.ordinal;
  };
  std::vector<Reference> launches = references_of(group);
  std::sort(launches.begin(), launches.end(), starts_earlier);
  std::vector<Reference> nodes = graph_nodes_of(group, launches);
  std::sort(nodes.begin(), nodes.end(), [&](const Reference& a, const Reference& b) {
    return a.launch != b.launch ? a.launch < b.launch : starts_earlier(a, b);
  });
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> tids;  // by the row of launches and the row of their nodes
  const auto tid_of = [&](uint32_t row, uint32_t node_row) {
    uint32_t& tid = tids[{row, node_row}];
    if (tid == 0) {
      tid = order_.take_tid("", group.device);
      std::string name = rows_.name;
      if (tids.size() > 1) name.append(" lane ").append(std::to_string(tids.size()));
      visitor_.on_track({begin_process(group), tid, name, group.device, 0, 0, std::nullopt, node_row == 0, false});
    }
    return tid;
  };
  Node node;
  auto next = nodes.begin();
  for (size_t launch = 0; launch < launches.size(); ++launch) {
    const Reference& reference = launches[launch];
    const uint32_t row = rows_.lanes.place(reference.span.start_ns + 1, reference.span.end_ns());
    step_.read_node(reference.message, node);
    Selection::find_activity(group, reference.ordinal, node);
    draw_slice(group, node, reference.span, reference.ordinal, rows_, tid_of(row, 0));
    Lanes node_rows;
    for (; next != nodes.end() && next->launch == launch; ++next) {
      draw_graph_node(*next, tid_of(row, node_rows.place(next->span.start_ns + 1, next->span.end_ns())));
    }
  }
}

// The drawn nodes of these launches, which are slices of streams, too. None if they would exceed the number of slices.
std::vector<StepDrawing::Reference> StepDrawing::graph_nodes_of(const Group& group,
                                                                const std::vector<Reference>& launches) {
  std::vector<Reference> nodes;
  if (summary_.left_out != 0) return nodes;
  std::unordered_map<int64_t, size_t> launch_of;
  for (size_t i = 0; i < launches.size(); ++i) {
    if (launches[i].correlation_id != 0) launch_of.emplace(launches[i].correlation_id, i);
  }
  if (launch_of.empty()) return nodes;
  for (const Group& stream : selection_.groups()) {
    if (stream.name.kind != DeviceKind::kStream || stream.name.unit != group.name.unit) continue;
    for_each_reference(stream, [&](Reference reference) {
      const auto found = launch_of.find(reference.correlation_id);
      if (found == launch_of.end()) return;
      const Span& launch = launches[found->second].span;
      if (reference.span.start_ns < launch.start_ns || reference.span.end_ns() > launch.end_ns()) return;
      reference.launch = found->second;
      nodes.push_back(reference);
    });
  }
  if (nodes.size() > options_.max_slices - std::min(num_planned_, options_.max_slices)) return {};
  num_planned_ += nodes.size();
  return nodes;
}

void StepDrawing::draw_graph_node(const Reference& reference, uint32_t tid) {
  Node node;
  step_.read_node(reference.message, node);
  Selection::find_activity(*reference.group, reference.ordinal, node);
  const Activity& activity = describe(node, true).activity;
  Argument arguments[2]{};
  size_t num_arguments = 0;
  if (!reference.group->name.stream.empty()) {
    arguments[num_arguments++] = {kStreamKey, Argument::Kind::kText, 0, reference.group->name.stream};
  }
  if (activity.is_typed) {
    const int64_t number = activity.columns[stepstats::ActivityField::kGraphNodeId];
    if (number != 0) arguments[num_arguments++] = {kGraphNode, Argument::Kind::kNumber, number, {}};
  }
  Slice slice{};
  slice.pid = pid_;
  slice.tid = tid;
  slice.start_ns = selection_.relative(reference.span.start_ns);
  slice.duration_ns = reference.span.duration_ns;
  slice.name = activity.name.empty() ? std::string_view("(no name)") : activity.name;
  slice.category = activity.category;
  slice.arguments = arguments;
  slice.num_arguments = num_arguments;
  visitor_.on_slice(slice);
  ++summary_.slices;
}

// --- slices ---

uint32_t StepDrawing::begin_process(const Group& group) {
  if (pid_ == 0) pid_ = process_pid(group.name.process, label_of(group, group.name.unit));
  return pid_;
}

void StepDrawing::draw_node(const Group& group, const Node& node, const Span& span, uint64_t ordinal) {
  begin_process(group);
  const int64_t start_ns = selection_.relative(span.start_ns);
  const Interval interval{start_ns, start_ns + span.duration_ns};
  Rows& rows = group.has_threads ? thread_of(group, node.thread_id) : rows_;
  if (group.name.kind == DeviceKind::kStream && rows.tids.empty()) rows.context_id = context_of(node);
  draw_slice(group, node, span, ordinal, rows, tid_for(group, rows, interval));
}

void StepDrawing::draw_slice(const Group& group, const Node& node, const Span& span, uint64_t ordinal, const Rows& rows,
                             uint32_t tid) {
  Slice slice{};
  slice.pid = pid_;
  slice.tid = tid;
  slice.start_ns = selection_.relative(span.start_ns);
  slice.duration_ns = span.duration_ns;
  const Interval interval{slice.start_ns, slice.start_ns + slice.duration_ns};
  Description& description = describe(node, group.name.on_gpu);
  const Activity& activity = description.activity;
  if (group.name.on_gpu) {
    if (group.takes_arrows && !launches_.empty()) slice.flow_in = launches_.flow_to(node, ordinal, group.rank);
    if (!waits_.empty()) {
      const Arrows::Ids arrows = waits_.arrows().from(ordinal);
      slice.first_wait_out = arrows.first;
      slice.num_waits_out = arrows.number;
    }
    if (group.name.kind == DeviceKind::kStream) {
      std::vector<Interval>& busy = busy_.back();
      if (busy.empty() || busy.back().end_ns < interval.start_ns) busy.push_back(interval);
      busy.back().end_ns = std::max(busy.back().end_ns, interval.end_ns);
    }
    if (group.counts_copies && activity.category == Category::kMemcpy && activity.num_bytes > 0) {
      copies_.push_back({activity.copy_kind, interval, activity.num_bytes});
    }
  } else {
    if (!launches_.empty()) {
      const Launches::Flows flows = launches_.flows_from(ordinal, next_flow_id_);
      slice.first_flow_out = flows.first;
      slice.num_flows_out = flows.number;
      summary_.flows += flows.number;
    }
    if (!waits_.empty()) slice.wait_in = waits_.arrows().to(ordinal);
    if (!event_waits_.empty()) {
      const Arrows::Ids arrows = event_waits_.arrows().from(ordinal);
      slice.first_event_out = arrows.first;
      slice.num_events_out = arrows.number;
      slice.event_in = event_waits_.arrows().to(ordinal);
    }
    if (!backward_passes_.empty()) {
      const Arrows::Ids arrows = backward_passes_.arrows().from(ordinal);
      slice.first_backward_out = arrows.first;
      slice.num_backwards_out = arrows.number;
      slice.backward_in = backward_passes_.arrows().to(ordinal);
    }
  }
  slice.name = activity.name.empty() ? std::string_view("(no name)") : activity.name;
  slice.category = activity.category;
  slice.color = color_of(activity);
  slice.alike = description.alike;
  slice.num_alike_arguments = description.num_label_arguments;
  add_own_arguments(node, span, rows, description);
  slice.arguments = description.arguments.data();
  slice.num_arguments = description.arguments.size();
  visitor_.on_slice(slice);
  ++summary_.slices;
}

StepDrawing::Rows& StepDrawing::thread_of(const Group& group, uint32_t thread_id) {
  if (last_thread_ != nullptr && last_thread_id_ == thread_id) return *last_thread_;
  Rows& rows = threads_[thread_id];
  if (rows.name.empty()) {
    rows.nests = true;
    rows.os_thread_id = thread_id;
    const auto stated = options_.thread_processes.find(thread_id);
    rows.process_id = stated == options_.thread_processes.end() ? process_of(group, thread_id) : stated->second;
    const std::string number = std::to_string(thread_id);
    const auto named = thread_names_.find(thread_id);
    if (named == thread_names_.end()) {
      rows.name = "thread " + number;
    } else {
      rows.name = named->second;
      if (!stepstats::contains(named->second, number)) rows.name.append(" (thread ").append(number).append(")");
    }
  }
  last_thread_ = &rows;
  last_thread_id_ = thread_id;
  return rows;
}

uint32_t StepDrawing::tid_for(const Group& group, Rows& rows, const Interval& interval) {
  size_t row = 0;
  if (rows.nests) {
    while (!rows.open.empty() && rows.open.back() <= interval.start_ns) rows.open.pop_back();
    if (rows.open.empty() || interval.end_ns <= rows.open.back()) {
      rows.open.push_back(interval.end_ns);
    } else {
      row = 1 + rows.lanes.place(interval.start_ns + 1, interval.end_ns);
    }
  } else {
    row = rows.lanes.place(interval.start_ns + 1, interval.end_ns);
  }
  if (row >= rows.tids.size()) rows.tids.resize(row + 1, 0);
  if (rows.tids[row] == 0) {
    rows.tids[row] = order_.take_tid("", group.device);
    std::string name = rows.name;
    if (row > 0) name.append(" lane ").append(std::to_string(row + 1));
    visitor_.on_track({pid_, rows.tids[row], name, group.device, rows.os_thread_id, rows.process_id, rows.context_id,
                       rows.nests && row == 0, group.name.kind == DeviceKind::kCopies});
  }
  return rows.tids[row];
}

Description& StepDrawing::describe(const Node& node, bool on_gpu) {
  return labels_.find(node, on_gpu, [&](Description& description) {
    if (on_gpu) {
      read_gpu_activity(node, step_.kernel_names(), description.activity);
    } else {
      read_host_activity(node, description.activity);
    }
    if (on_gpu) description.activity.op = host_spelling_of(description.activity.op);
    add_label_arguments(description.activity, description.arguments);
    description.texts.clear();
    if (description.activity.is_typed) {
      add_typed_arguments(description.activity.columns, step_.kernel_names(), description.arguments, description.texts);
    }
    // By which a reader knows the name of the slice from one that the program gave.
    if (description.activity.is_unnamed || (description.activity.is_typed && description.activity.name.empty())) {
      description.arguments.push_back({kUnnamed, Argument::Kind::kNumber, 1, {}});
    }
    description.has_own_keys = has_argument(description, kCorrelation) || has_argument(description, kWaited);
  });
}

// The name of the host's slice, e.g. `aten::copy_`, for the op `aten.copy_` of an activity.
std::string_view StepDrawing::host_spelling_of(std::string_view op) {
  if (op.find('.') == std::string_view::npos) return op;
  if (!names_with_colons_) {
    names_with_colons_.emplace();
    Node node;
    for (const Group& group : selection_.groups()) {
      if (group.name.on_gpu) continue;
      for (const Device* device : group.parts) {
        step_.for_each_message(*device, [&](std::string_view message) {
          step_.read_node(message, node);
          if (node.name.find(':') != std::string_view::npos)
            names_with_colons_->emplace(without_colons(node.name), node.name);
        });
      }
    }
  }
  const auto spelled = names_with_colons_->find(std::string(op));
  return spelled == names_with_colons_->end() ? op : spelled->second;
}

void StepDrawing::add_own_arguments(const Node& node, const Span& span, const Rows& rows, Description& description) {
  const auto add_number = [&description](std::string_view key, int64_t number) {
    if (description.has_own_keys && has_argument(description, key)) return;
    Argument& argument = description.arguments.emplace_back();  // in place, because every slice has one or two
    argument.key = key;
    argument.number = number;
  };
  if (node.correlation_id != 0) add_number(kCorrelation, node.correlation_id + options_.added_to_correlations);
  if (!options_.op_details.runs.empty() && description.activity.category == stepstats::Category::kOp) {
    const OpDetails::Arguments* const details =
        options_.op_details.of(span.start_ns - options_.shift_ns, span.duration_ns, node.thread_id);
    if (details != nullptr) {
      for (const auto& [key, text] : *details) {
        if (has_argument(description, key)) continue;  // a text of its op states the shapes
        description.arguments.push_back({key, Argument::Kind::kText, 0, text});
      }
    }
  }
  if (!options_.collectives.runs.empty() && description.activity.category == stepstats::Category::kKernel) {
    const OpDetails::Arguments* const stated =
        options_.collectives.of(span.start_ns - options_.shift_ns, 0, node.correlation_id);
    if (stated != nullptr) {
      for (const auto& [key, text] : *stated) description.arguments.push_back(written_argument(key, text));
    }
  }
  add_call_op(node, description);
  if (description.activity.is_typed && description.activity.columns.kind() == TableKind::kApiCall) {
    const int64_t process_id = description.activity.columns[stepstats::ActivityField::kProcessId];
    if (process_id != rows.process_id) add_number(kProcess, process_id);
    const EventRecord* const record = event_records_.of_call(node.correlation_id);
    if (record != nullptr) {
      add_number(kEventKey, record->event_id);
      add_number(kStreamKey, record->stream_id);
    }
  }
  // A call is scheduled at its start or has no such time; an activity waits for its stream after its launch.
  const int64_t scheduled_ns = scheduled_ns_of(node);
  int64_t waited_ns;
  if (scheduled_ns > 0 && !__builtin_sub_overflow(span.start_ns, selection_.shifted(scheduled_ns), &waited_ns) &&
      waited_ns >= 0 && waited_ns <= kFarNs) {
    add_number(kWaited, waited_ns);
  }
}

// The op of a call that launched no work, which would state it. Of the slices with the call's correlation id, as those
// of a call of the runtime, of the driver's call inside it and of the wait that both are, the first one states it.
void StepDrawing::add_call_op(const Node& node, Description& description) {
  if (options_.call_ops.runs.empty() || node.correlation_id == 0) return;
  const OpDetails::Arguments* const stated = options_.call_ops.of(node.correlation_id, 0, 0);
  if (stated == nullptr || !calls_with_op_.insert(node.correlation_id).second) return;
  for (const auto& [key, text] : *stated) {
    if (!has_argument(description, key)) description.arguments.push_back({key, Argument::Kind::kText, 0, text});
  }
}

// --- counters ---

void StepDrawing::draw_series(uint32_t pid, std::string_view name, std::string_view unit,
                              const std::vector<Point>& points) {
  if (points.empty()) return;
  const uint32_t id = next_counter_id_++;
  visitor_.on_counter_track({pid, id, name, unit});
  const auto draw_value = [&](int64_t time_ns, int64_t value) {
    visitor_.on_value({pid, id, name, unit, time_ns, value});
    ++summary_.values;
  };
  const int64_t first_ns = selection_.window_time(options_.window_start_ns);
  const int64_t last_ns = selection_.window_time(options_.window_end_ns);
  const Point* before = nullptr;  // the last point before the window, which gives the window's first value
  for (const Point& point : points) {
    if (point.time_ns > last_ns) break;
    if (point.time_ns < first_ns) {
      before = &point;
      continue;
    }
    if (before != nullptr && point.time_ns > first_ns) draw_value(first_ns, before->value);
    before = nullptr;
    draw_value(point.time_ns, point.value);
  }
}

void StepDrawing::draw_memory() {
  std::vector<const Device*> devices;
  for (const Group& group : selection_.groups()) {
    if (!group.name.on_gpu) devices.insert(devices.end(), group.parts.begin(), group.parts.end());
  }
  const auto is_drawable = [this](int64_t wall_ns) { return selection_.can_draw_at(wall_ns); };
  uint32_t pid = 0;
  for (AllocatorChanges& allocator :
       read_memory_changes(step_, devices, selection_.has_allocator_memory(), is_drawable)) {
    for (Delta& change : allocator.changes)
      change.time_ns = std::max<int64_t>(0, selection_.relative(selection_.shifted(change.time_ns)));
    const std::vector<Point> points = running_total(allocator.changes);
    if (points.empty()) continue;
    if (pid == 0) pid = process_pid(TrackOrder::kMemory);
    std::string name = "memory ";
    name.append(allocator.allocator.empty() ? std::string_view("(no name)") : allocator.allocator);
    if (allocator.estimated) name.append(" (estimated)");
    draw_series(pid, name, "bytes", points);
  }
}

// Draws the counters of the group's GPU. The group must be the last one of that GPU.
void StepDrawing::draw_counters(const Group& group) {
  // Streams without a drawn slice do not count: the part of a recording that is drawn may lack them.
  const auto is_drawn = [](const std::vector<Interval>& stream) { return !stream.empty(); };
  const bool are_several = std::count_if(busy_.begin(), busy_.end(), is_drawn) > 1;
  const std::vector<Point> busy = are_several ? count_busy(busy_) : std::vector<Point>();
  busy_.clear();
  std::vector<Copy> copies;
  copies.swap(copies_);
  std::vector<const SampledCounter*> sampled;
  for (const SampledCounter& counter : options_.sampled) {
    if (counter.device == group.name.unit.substr(group.name.prefix.size())) sampled.push_back(&counter);
  }
  if (busy.empty() && copies.empty() && sampled.empty()) return;
  const uint32_t pid = process_pid(group.name.process);
  draw_series(pid, "busy streams", "streams", busy);
  NameTable kinds;  // in order of first use
  std::vector<std::vector<Delta>> deltas;
  for (const Copy& copy : copies) {
    const auto [kind, is_new] = kinds.insert(copy.kind);
    if (is_new) deltas.emplace_back();
    deltas[kind].push_back({copy.interval.start_ns, copy.num_bytes});
    deltas[kind].push_back({copy.interval.end_ns, -copy.num_bytes});
  }
  copies = {};
  for (uint32_t kind = 0; kind < kinds.size(); ++kind) {
    draw_series(pid, std::string(kinds[kind]) + " in flight", "bytes", running_total(deltas[kind]));
    deltas[kind] = {};
  }
  for (const SampledCounter* counter : sampled) {
    std::vector<Point> points;
    points.reserve(counter->samples.size());
    for (const Point& sample : counter->samples) {
      if (!selection_.is_plausible(sample.time_ns)) continue;
      // A value from before the first slice counts from there on.
      const int64_t wall_ns = selection_.shifted(sample.time_ns);
      const int64_t time_ns = wall_ns < summary_.base_ns ? 0 : selection_.relative(wall_ns);
      if (!points.empty() && points.back().time_ns >= time_ns) points.pop_back();  // of one time the last value
      points.push_back({time_ns, sample.value});
    }
    draw_series(pid, counter->name, counter->unit, points);
  }
}

}  // namespace

Summary draw_step(const StepStats& step, const DrawingOptions& options, TraceVisitor& visitor) {
  return StepDrawing(step, options, visitor).draw();
}

Summary survey(const StepStats& step, const DrawingOptions& options) {
  return Selection(step, options, nullptr).summary();
}

std::vector<std::vector<Span>> drawable_times(const StepStats& step) {
  const DrawingOptions options;
  const Selection selection(step, options, nullptr);
  std::vector<std::vector<Span>> times;
  times.reserve(step.devices().size());
  for (const Device& device : step.devices()) {
    std::vector<Span>& of_device = times.emplace_back();
    of_device.reserve(device.num_nodes);
    step.for_each_node(device, [&](const Node& node) {
      Span span = span_of(node);
      of_device.push_back(selection.can_draw(span) ? span : Span());
    });
  }
  return times;
}

}  // namespace collector::draw
