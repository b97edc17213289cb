#include "write/xspace_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "draw/step_drawing.h"
#include "stepstats/activity.h"
#include "stepstats/devices.h"
#include "stepstats/typed_activity.h"
#include "stepstats/wire_sink.h"
#include "write/xspace_fields.h"

namespace collector::write {

using stepstats::ActivityField;
using stepstats::Device;
using stepstats::DeviceKind;
using stepstats::DeviceName;
using stepstats::kBytes;
using stepstats::kVarint;
using stepstats::make_tag;
using stepstats::Node;
using stepstats::Span;
using stepstats::StepStats;
using stepstats::TableKind;
using stepstats::WireReader;

namespace {

constexpr uint64_t kPicoseconds = 1000;
constexpr size_t kMostDescriptions = 1 << 16;  // that are remembered at a time

void put_varint(std::string& to, uint64_t value) {
  char bytes[stepstats::kLongestVarint];
  to.append(bytes, stepstats::write_varint(value, bytes));
}

void put_number(std::string& to, uint32_t field, uint64_t value) {
  put_varint(to, make_tag(field, kVarint));
  put_varint(to, value);
}

void put_bytes(std::string& to, uint32_t field, std::string_view bytes) {
  put_varint(to, make_tag(field, kBytes));
  put_varint(to, bytes.size());
  to.append(bytes);
}

// Whether two nodes that differ in this column alone have the same description: ids of annotations, and what is stated
// beside the description.
constexpr bool is_beside_description(uint32_t field) {
  return field == static_cast<uint32_t>(ActivityField::kExternalId) ||
         field == static_cast<uint32_t>(ActivityField::kDepth) ||
         field == static_cast<uint32_t>(ActivityField::kDetailsId) ||
         field == static_cast<uint32_t>(ActivityField::kSourceGraphNodeId) ||
         field == static_cast<uint32_t>(ActivityField::kCapturedExternalId);
}

// A text that is equal for nodes with the same description.
void make_key(const Node& node, std::string_view activity, bool is_copy, std::string& key) {
  key.clear();
  key.push_back(is_copy ? '\1' : '\0');
  put_varint(key, node.name.size());
  key.append(node.name);
  put_varint(key, node.label.size());
  key.append(node.label);
  put_varint(key, node.op_end);
  WireReader reader(activity, activity);
  while (!reader.at_end()) {
    const char* const start = reader.position();
    const uint32_t tag = reader.read_tag();
    reader.skip(tag);
    if (!is_beside_description(tag >> 3)) key.append(start, reader.position());
  }
}

// The columns of an activity that an event's place and its own stats depend on.
struct PlacedActivity {
  TableKind kind = TableKind::kUnknown;
  uint32_t process = 0;

  explicit PlacedActivity(std::string_view activity) {
    WireReader reader(activity, activity);
    while (!reader.at_end()) {
      const uint32_t tag = reader.read_tag();
      if (tag == make_tag(static_cast<uint32_t>(ActivityField::kKind), kVarint)) {
        kind = static_cast<TableKind>(reader.read_varint());
      } else if (tag == make_tag(static_cast<uint32_t>(ActivityField::kProcessId), kVarint)) {
        process = static_cast<uint32_t>(reader.read_varint());
      } else {
        reader.skip(tag);
      }
    }
  }
};

// A node with a possible time.
struct TimedNode {
  Span span;
  std::string_view message;
  uint32_t index;
  bool is_copy;
};

// Finds the lines of nodes, and makes a new one where there is none.
class LinesOfThreads {
 public:
  LinesOfThreads(const LineOptions& options, std::vector<EventLine>& lines) : options_(options), lines_(lines) {}

  EventLine& line_of(uint32_t thread, const PlacedActivity& activity) {
    if (!options_.by_thread) thread = 0;
    EventLine& own = line_of(thread, 0);
    if (!options_.by_process || activity.kind != TableKind::kApiCall || activity.process == 0) return own;
    if (own.process == 0 || own.process == activity.process) {
      own.process = activity.process;
      return own;
    }
    EventLine& other = line_of(thread, activity.process);
    other.process = activity.process;
    return other;
  }

 private:
  EventLine& line_of(uint32_t thread, uint32_t other_process) {
    const auto [found, is_new] = places_.try_emplace({thread, other_process}, lines_.size());
    if (!is_new) return lines_[found->second];
    EventLine& line = lines_.emplace_back();
    line.thread = thread;
    line.other_process = other_process;
    const auto known = options_.processes.find(thread);
    if (other_process == 0 && known != options_.processes.end()) line.process = known->second;
    return line;
  }

  const LineOptions& options_;
  std::vector<EventLine>& lines_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> places_;
};

// Writes events one after the other.
class EventWriter {
 public:
  explicit EventWriter(const LineOptions& options) : options_(options) {}

  void put(const TimedNode& timed, const Node& node, std::string_view activity, TableKind kind, std::string& line) {
    const EventDescription& description = describe(timed, node, activity);
    event_.clear();
    put_number(event_, kEventMetadata, description.name);
    const uint64_t start_ns = static_cast<uint64_t>(timed.span.start_ns) + static_cast<uint64_t>(options_.shift_ns);
    put_number(event_, kEventOffset, (start_ns - static_cast<uint64_t>(options_.origin_ns)) * kPicoseconds);
    // XProf leaves out events without a length.
    put_number(event_, kEventDuration,
               std::max(static_cast<uint64_t>(timed.span.duration_ns) * kPicoseconds, uint64_t{1}));
    event_.append(description.stats);
    if (!options_.causes.empty()) put_stat("_c", kStatInt64, cause_of(timed.span.start_ns));
    if (node.correlation_id != 0 && options_.first_correlation) {
      put_stat(options_.correlation_stat.c_str(), kStatUint64, *options_.first_correlation + node.correlation_id);
    }
    if (const auto flow = options_.flows.find(timed.index); flow != options_.flows.end()) {
      put_stat("flow", kStatUint64, flow->second);
    }
    if (kind == TableKind::kAnnotation && options_.details != nullptr) put_details(timed.span, node.thread_id);
    if (kind == TableKind::kApiCall) {
      const auto record = options_.event_stats.find(node.correlation_id);
      if (record != options_.event_stats.end()) event_.append(record->second);
    }
    put_bytes(line, kLineEvents, event_);
  }

 private:
  const EventDescription& describe(const TimedNode& timed, const Node& node, std::string_view activity) {
    make_key(node, activity, timed.is_copy, key_);
    const auto found = descriptions_.find(key_);
    if (found != descriptions_.end()) return found->second;
    if (descriptions_.size() == kMostDescriptions) descriptions_.clear();
    return descriptions_.emplace(key_, options_.describe(timed.message, activity, timed.is_copy)).first->second;
  }

  void put_stat(const char* name, uint32_t field, uint64_t value) {
    uint64_t& number = stat_numbers_[name];
    if (number == 0) number = options_.stat_number(name);
    stat_.clear();
    put_number(stat_, kStatMetadata, number);
    put_number(stat_, field, value);
    put_bytes(event_, kEventStats, stat_);
  }

  void put_details(const Span& span, uint32_t thread) {
    const draw::OpDetails::Arguments* const stated = options_.details->of(span.start_ns, span.duration_ns, thread);
    if (stated == nullptr) return;
    event_.append(options_.detail_stats.at(static_cast<size_t>(stated - options_.details->arguments.data())));
  }

  // The step in which something began.
  uint64_t cause_of(int64_t start_ns) const {
    const auto after =
        std::upper_bound(options_.causes.begin(), options_.causes.end(), start_ns,
                         [](int64_t time_ns, const LineOptions::Cause& cause) { return time_ns < cause.start_ns; });
    return (after == options_.causes.begin() ? after : after - 1)->number;
  }

  const LineOptions& options_;
  std::unordered_map<std::string, EventDescription> descriptions_;
  std::unordered_map<std::string_view, uint64_t> stat_numbers_;
  std::string key_;
  std::string event_;
  std::string stat_;
};

// The texts and times of a node.
std::string identity_of(const Node& node) {
  std::string key;
  for (const int64_t time : {node.start_us, node.end_rel_us, node.start_ns, node.end_rel_ns}) {
    put_varint(key, static_cast<uint64_t>(time));
  }
  put_varint(key, node.name.size());
  return key.append(node.name).append(node.label);
}

}  // namespace

StepEvents::StepEvents(const StepStats& step) : step_(&step), times_(draw::drawable_times(step)) {
  stepstats::RepeatedActivities repeated;
  std::vector<DeviceName> names;
  names.reserve(step.devices().size());
  for (const Device& device : step.devices()) {
    names.push_back(stepstats::parse_device_name(device.name));
    if (names.back().kind == DeviceKind::kAllStreams) repeated.add_all_streams(step, device, names.back().unit);
  }
  activities_.resize(names.size());
  for (size_t at = 0; at < names.size(); ++at) {
    if (names[at].kind == DeviceKind::kStream) {
      activities_[at] = repeated.take_stream(names[at].unit, names[at].stream);
    } else if (names[at].kind == DeviceKind::kCopies) {
      activities_[at] = repeated.take_copies(names[at].unit);
    }
    if (activities_[at].size() != step.devices()[at].num_nodes) activities_[at] = {};
  }
  mark_unnamed_copies(names);
}

// TensorFlow gives the copies and memsets that an op makes by itself the name of the op, under the stream and under
// `memcpy`.
void StepEvents::mark_unnamed_copies(const std::vector<DeviceName>& names) {
  copies_.resize(names.size());
  std::map<std::string_view, std::unordered_map<std::string, int64_t>> unnamed;  // by GPU
  stepstats::KernelNames no_names;
  stepstats::Activity activity;
  const auto has_columns = [&](size_t device, uint32_t node, std::string_view own) {
    return !own.empty() || (!activities_[device].empty() && !activities_[device][node].empty());
  };
  for (size_t at = 0; at < names.size(); ++at) {
    if (names[at].kind != DeviceKind::kCopies) continue;
    uint32_t index = 0;
    step_->for_each_node(step_->devices()[at], [&](const Node& node) {
      const uint32_t number = index++;
      if (has_columns(at, number, node.activity)) return;
      stepstats::read_gpu_activity(node, no_names, activity);
      if (activity.category != stepstats::Category::kKernel) return;
      copies_[at].resize(step_->devices()[at].num_nodes);
      copies_[at][number] = true;
      ++unnamed[names[at].unit][identity_of(node)];
    });
  }
  if (unnamed.empty()) return;
  for (size_t at = 0; at < names.size(); ++at) {
    if (names[at].kind != DeviceKind::kStream) continue;
    const auto of_unit = unnamed.find(names[at].unit);
    if (of_unit == unnamed.end()) continue;
    uint32_t index = 0;
    step_->for_each_node(step_->devices()[at], [&](const Node& node) {
      const uint32_t number = index++;
      if (has_columns(at, number, node.activity)) return;
      const auto twin = of_unit->second.find(identity_of(node));
      if (twin == of_unit->second.end() || twin->second == 0) return;
      --twin->second;
      copies_[at].resize(step_->devices()[at].num_nodes);
      copies_[at][number] = true;
    });
  }
}

std::vector<std::vector<uint32_t>> StepEvents::nodes_beside(const std::vector<size_t>& devices,
                                                            const std::vector<size_t>& others) const {
  std::unordered_map<std::string, int64_t> counts;
  for (const size_t device : devices) {
    step_->for_each_node(step_->devices()[device], [&](const Node& node) { ++counts[identity_of(node)]; });
  }
  if (!counts.empty()) {
    for (const size_t device : others) {
      step_->for_each_node(step_->devices()[device], [&](const Node& node) {
        const auto found = counts.find(identity_of(node));
        if (found != counts.end()) --found->second;
      });
    }
  }
  std::vector<std::vector<uint32_t>> beside;
  for (const size_t device : devices) {
    std::vector<uint32_t>& own = beside.emplace_back();
    uint32_t index = 0;
    step_->for_each_node(step_->devices()[device], [&](const Node& node) {
      int64_t& count = counts[identity_of(node)];
      if (count > 0) {
        --count;
        own.push_back(index);
      }
      ++index;
    });
  }
  return beside;
}

EventLines StepEvents::lines(size_t device, const LineOptions& options) const {
  EventLines found;
  const std::vector<Span>& times = times_[device];
  const std::vector<bool>& copies = copies_[device];
  std::vector<TimedNode> timed;
  timed.reserve(times.size());
  uint32_t index = 0;
  auto wanted = options.only == nullptr ? std::vector<uint32_t>::const_iterator() : options.only->begin();
  step_->for_each_message(step_->devices()[device], [&](std::string_view message) {
    const uint32_t at = index++;
    if (options.only != nullptr) {
      if (wanted == options.only->end() || *wanted != at) return;
      ++wanted;
    }
    if (times[at].valid()) {
      timed.push_back({times[at], message, at, !copies.empty() && copies[at]});
    } else {
      ++found.untimed;
    }
  });
  std::stable_sort(timed.begin(), timed.end(), [](const TimedNode& a, const TimedNode& b) {
    return a.span.start_ns != b.span.start_ns ? a.span.start_ns < b.span.start_ns
                                              : a.span.duration_ns > b.span.duration_ns;
  });
  LinesOfThreads lines(options, found.lines);
  EventWriter writer(options);
  Node node;
  for (const TimedNode& each : timed) {
    step_->read_node(each.message, node);
    const std::string_view activity = activities_[device].empty() ? node.activity : activities_[device][each.index];
    const PlacedActivity placed(activity);
    writer.put(each, node, activity, placed.kind, lines.line_of(node.thread_id, placed).events);
  }
  found.drawn = timed.size();
  return found;
}

}  // namespace collector::write
