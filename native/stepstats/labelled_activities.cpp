#include "stepstats/labelled_activities.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "stepstats/activity.h"
#include "stepstats/groups.h"
#include "stepstats/possible_times.h"

namespace collector::stepstats {
namespace {

constexpr std::array<std::string_view, LabelledActivities::kColumns> kNames = {
    "device",
    "category",
    "start_ns",
    "duration_ns",
    "scheduled_ns",
    "thread_id",
    "correlation_id",
    "name",
    "op",
    "num_bytes",
    "copy_kind",
    "from",
    "to",
    "registers",
    "shared_bytes",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "grid_x",
    "grid_y",
    "grid_z",
    "block_x",
    "block_y",
    "block_z",
    "table",
    "table_row",
};

constexpr size_t kKindBytes = 2;  // of an Activity that states its kind alone

struct Word {
  std::string_view key;
  LabelledActivities::Column first;
  size_t numbers;
};

constexpr std::array kWords = {
    Word{"regs", LabelledActivities::kRegisters, 1},
    Word{"shm", LabelledActivities::kSharedBytes, 1},
    Word{"static_shared", LabelledActivities::kStaticSharedBytes, 1},
    Word{"dynamic_shared", LabelledActivities::kDynamicSharedBytes, 1},
    Word{"grid", LabelledActivities::kGridX, 3},
    Word{"block", LabelledActivities::kBlockX, 3},
};

// The numbers between the commas of "8,1,1"; a part that is not a number stays absent.
void read_numbers(std::string_view text, size_t count, int64_t* to) {
  for (size_t at = 0; at < count && !text.empty(); ++at) {
    const size_t comma = std::min(text.find(','), text.size());
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + comma, number);
    if (error == std::errc() && end == text.data() + comma && number >= 0) to[at] = number;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

class Reader {
 public:
  Reader(LabelledActivities& found, TypedRows& typed, std::string_view whole) : found_(found), columns_(typed, whole) {}

  void read(const Node& node, const Span& span, const DeviceName& device);

 private:
  using Row = std::array<int64_t, LabelledActivities::kColumns>;

  int64_t text_number(std::string_view text) {
    return text.empty() ? LabelledActivities::kAbsent : int64_t{found_.texts.insert(text).number};
  }

  LabelledActivities& found_;
  TypedRowsReader columns_;
  KernelNames no_names_;  // the texts of a recording are missing
  Activity activity_;
};

void Reader::read(const Node& node, const Span& span, const DeviceName& device) {
  // Nodes of drawn traces state the kind of a row beside calls, and nothing of its columns.
  const bool is_beside = is_beside_calls(kind_of(node.activity));
  const bool has_columns = node.activity.size() > (is_beside ? kKindBytes : 0);
  const int64_t table_row = has_columns ? columns_.read(node.activity, node, 0) : TypedRowsReader::kNoRow;
  const bool is_typed = table_row != TypedRowsReader::kNoRow;
  if (!is_typed && is_beside) {
    ++found_.num_unlabelled;
    return;
  }
  device.on_gpu ? read_gpu_activity(node, no_names_, activity_) : read_host_activity(node, activity_);
  // Whatever their names are: a copy whose kind is not stated is no kernel.
  if (device.kind == DeviceKind::kCopies && activity_.category == Category::kKernel) {
    activity_.category = Category::kMemcpy;
  }
  Row row;
  row.fill(LabelledActivities::kAbsent);
  row[LabelledActivities::kDevice] = static_cast<int64_t>(found_.devices.size()) - 1;
  row[LabelledActivities::kCategory] = static_cast<int64_t>(activity_.category);
  row[LabelledActivities::kStartNs] = span.start_ns;
  row[LabelledActivities::kDurationNs] = span.duration_ns;
  row[LabelledActivities::kScheduledNs] = scheduled_ns_of(node);
  row[LabelledActivities::kThreadId] = node.thread_id;
  row[LabelledActivities::kCorrelationId] = node.correlation_id;
  if (!activity_.is_unnamed) {
    row[LabelledActivities::kName] = text_number(activity_.full_name.empty() ? activity_.name : activity_.full_name);
  }
  row[LabelledActivities::kOp] = text_number(activity_.op);
  row[LabelledActivities::kNumBytes] = activity_.num_bytes;
  row[LabelledActivities::kCopyKind] = text_number(activity_.copy_kind);
  row[LabelledActivities::kFrom] = text_number(activity_.from);
  row[LabelledActivities::kTo] = text_number(activity_.to);
  if (is_typed) {
    row[LabelledActivities::kTable] = static_cast<int64_t>(kind_of(node.activity));
    row[LabelledActivities::kTableRow] = table_row;
  }
  for (size_t at = 0; at < activity_.num_details; ++at) {
    const Detail& detail = activity_.details[at];
    for (const Word& word : kWords) {
      if (detail.key == word.key) read_numbers(detail.value, word.numbers, &row[word.first]);
    }
  }
  for (size_t column = 0; column < row.size(); ++column) found_.columns[column].push_back(row[column]);
}

// Start and duration of activities, each of which can be taken once.
class UnmatchedSpans {
 public:
  void add(int64_t start_ns, int64_t duration_ns) { ++counts_[{start_ns, duration_ns}]; }

  bool take(const Span& span) {
    const auto at = counts_.find({span.start_ns, span.duration_ns});
    if (at == counts_.end() || at->second == 0) return false;
    --at->second;
    return true;
  }

 private:
  std::map<std::pair<int64_t, int64_t>, size_t> counts_;
};

// The copies and memsets that were read of a GPU.
UnmatchedSpans spans_of_unit(const LabelledActivities& found, std::string_view unit) {
  UnmatchedSpans spans;
  const auto& columns = found.columns;
  for (size_t row = 0; row < columns[LabelledActivities::kDevice].size(); ++row) {
    const auto category = static_cast<Category>(columns[LabelledActivities::kCategory][row]);
    if (category != Category::kMemcpy && category != Category::kMemset) continue;
    const auto device = static_cast<size_t>(columns[LabelledActivities::kDevice][row]);
    if (found.devices[device].parts.unit != unit) continue;
    spans.add(columns[LabelledActivities::kStartNs][row], columns[LabelledActivities::kDurationNs][row]);
  }
  return spans;
}

// The rows from `first` on are those of the GPU's copies. One without a kind that has the name and the times of a
// kernel is that kernel once more: TensorFlow gives the copies and memsets that an op makes by itself the name of the
// op, under the stream and under `memcpy`. The row of the stream becomes the copy.
void unite_unnamed_copies(LabelledActivities& found, size_t first, std::string_view unit) {
  auto& columns = found.columns;
  auto& categories = columns[LabelledActivities::kCategory];
  const auto is = [&](size_t row, Category category) { return categories[row] == static_cast<int64_t>(category); };
  const auto key_of = [&](size_t row) {
    return std::array{columns[LabelledActivities::kStartNs][row], columns[LabelledActivities::kDurationNs][row],
                      columns[LabelledActivities::kName][row], columns[LabelledActivities::kOp][row]};
  };
  std::multimap<std::array<int64_t, 4>, size_t> unnamed;
  for (size_t row = first; row < categories.size(); ++row) {
    const bool has_kind = columns[LabelledActivities::kCopyKind][row] != LabelledActivities::kAbsent;
    if (is(row, Category::kMemcpy) && !has_kind) unnamed.emplace(key_of(row), row);
  }
  if (unnamed.empty()) return;
  std::vector<bool> is_repeated(categories.size());
  for (size_t row = 0; row < first; ++row) {
    const auto device = static_cast<size_t>(columns[LabelledActivities::kDevice][row]);
    if (!is(row, Category::kKernel) || found.devices[device].parts.unit != unit) continue;
    const auto twin = unnamed.find(key_of(row));
    if (twin == unnamed.end()) continue;
    categories[row] = static_cast<int64_t>(Category::kMemcpy);
    is_repeated[twin->second] = true;
    unnamed.erase(twin);
  }
  for (auto& column : columns) {
    size_t kept = first;
    for (size_t row = first; row < column.size(); ++row) {
      if (!is_repeated[row]) column[kept++] = column[row];
    }
    column.resize(kept);
  }
}

// "gpu:0 to gpu:1", which follows the kinds of memory in the label of a copy between devices.
void read_devices(std::string_view label, LabelledGpuWork& work) {
  constexpr std::string_view kSource = "gpu:";
  constexpr std::string_view kDestination = " to gpu:";
  const size_t destination = label.rfind(kDestination);
  if (destination == std::string_view::npos) return;
  const std::string_view before = label.substr(0, destination);
  const size_t source = before.rfind(kSource);
  if (source == std::string_view::npos) return;
  read_numbers(before.substr(source + kSource.size()), 1, &work.src_device);
  read_numbers(label.substr(destination + kDestination.size()), 1, &work.dst_device);
}

}  // namespace

LabelledGpuWork read_gpu_label(std::string_view name, std::string_view label) {
  Node node;
  node.name = name;
  node.label = label;
  Activity activity;
  KernelNames no_names;
  read_gpu_activity(node, no_names, activity);
  LabelledGpuWork work;
  work.num_bytes = activity.num_bytes;
  work.copy_kind = activity.copy_kind;
  work.from = activity.from;
  work.to = activity.to;
  if (activity.category == Category::kMemset) work.kind = TableKind::kMemset;
  if (activity.category == Category::kMemcpy) {
    work.kind = TableKind::kMemcpy;
    if (work.copy_kind == "PtoP") read_devices(label, work);
  }
  for (size_t at = 0; at < activity.num_details; ++at) {
    if (activity.details[at].key != "grid") continue;
    std::array<int64_t, 3> grid{};
    read_numbers(activity.details[at].value, grid.size(), grid.data());
    const bool fits = std::all_of(grid.begin(), grid.end(), [](int64_t blocks) { return blocks <= INT32_MAX; });
    if (!fits || __builtin_mul_overflow(grid[0] * grid[1], grid[2], &work.num_blocks)) work.num_blocks = 0;
  }
  return work;
}

LabelledActivities read_labelled_activities(const StepStats& step, TypedRows& typed) {
  LabelledActivities found;
  Reader reader(found, typed, step.bytes());
  const std::vector<Group> groups = make_groups(step, nullptr);
  const PossibleTimes times(step, groups);
  const auto read_group = [&](const Group& group, const auto& is_repeated) {
    found.devices.push_back({group.device, group.name});
    size_t node_number = 0;
    for (const Device* const device : group.parts) {
      found.thread_names.insert(found.thread_names.end(), device->thread_names.begin(), device->thread_names.end());
      step.for_each_node(*device, [&](Node& node) {
        const Span span = span_of(node);
        if (node.activity.empty() && !group.activities.empty()) node.activity = group.activities[node_number];
        ++node_number;
        if (!times.has(span)) {
          ++found.num_untimed;
        } else if (!is_repeated(span)) {
          reader.read(node, span, group.name);
        }
      });
    }
  };
  std::vector<const Group*> copies;
  for (const Group& group : groups) {
    if (group.name.on_gpu && !group.takes_arrows) {
      copies.push_back(&group);
    } else {
      read_group(group, [](const Span&) { return false; });
    }
  }
  // The copies under `memcpy` are those under the streams, except in files that have them only there.
  for (const Group* const group : copies) {
    UnmatchedSpans under_streams = spans_of_unit(found, group->name.unit);
    const size_t first = found.columns[LabelledActivities::kCategory].size();
    read_group(*group, [&](const Span& span) { return under_streams.take(span); });
    unite_unnamed_copies(found, first, group->name.unit);
  }
  return found;
}

std::vector<std::string_view> labelled_column_names() { return {kNames.begin(), kNames.end()}; }

}  // namespace collector::stepstats
