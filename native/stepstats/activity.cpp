#include "stepstats/activity.h"

#include <algorithm>
#include <charconv>

#include "stepstats/ascii.h"
#include "stepstats/labels.h"

namespace collector::stepstats {
namespace {

constexpr auto kNpos = std::string_view::npos;
constexpr std::string_view kNoName = "unknown";  // the short name of kernels without a name
constexpr std::string_view kEquals = " = ";      // between an annotation and its op in a label

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// The copy kind of "MEMCPYHtoD", or of "MemcpyH2D", the form of TensorFlow's later tracers.
std::string_view copy_kind(std::string_view name) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kShort = {
      {{"H2D", "HtoD"}, {"D2H", "DtoH"}, {"D2D", "DtoD"}, {"P2P", "PtoP"}, {"H2H", "HtoH"}}};
  const std::string_view kind = name.substr(6);
  for (const auto& [written, meant] : kShort) {
    if (kind == written) return meant;
  }
  return kind.empty() ? "unknown" : kind;
}

// The label behind the name of a copy or memset: "4096 bytes (Pageable to Device)" or "4096 bytes (Device)"; also "4096
// bytes" or "(Pageable to Device)" alone.
void read_bytes_label(std::string_view name, std::string_view label, Activity& activity) {
  size_t end = label.find(" bytes");
  if (end == kNpos) {  // the size is unknown
    if (!starts_with(label, name) || label.substr(name.size(), 2) != " (") return;
    end = name.size();
  } else {
    size_t start = end;
    while (start > 0 && is_digit(label[start - 1])) --start;
    int64_t num_bytes = 0;
    const auto [stop, error] = std::from_chars(label.data() + start, label.data() + end, num_bytes);
    if (error != std::errc() || stop == label.data() + start) return;
    activity.num_bytes = num_bytes;
  }
  const size_t open = label.find('(', end);
  const size_t close = label.find(')', end);
  if (open == kNpos || close == kNpos || close < open) return;
  const std::string_view kinds = label.substr(open + 1, close - open - 1);
  const size_t to = kinds.find(" to ");
  if (to == kNpos) {
    activity.to = kinds;
  } else {
    activity.from = kinds.substr(0, to);
    activity.to = kinds.substr(to + 4);
  }
}

// Whether a word has the form `key:value` that tracers write behind a kernel's name. Parts of C++ names such as
// `std::pair` have not.
bool read_detail(std::string_view word, Detail& detail) {
  const size_t colon = word.find(':');
  if (colon == 0 || colon == kNpos || colon + 1 == word.size()) return false;
  detail = {word.substr(0, colon), word.substr(colon + 1)};
  const auto in_key = [](char c) { return is_lower(c) || c == '_'; };
  const auto in_value = [](char c) {
    return is_digit(c) || is_lower(c) || is_upper(c) || c == '_' || c == ',' || c == '.' || c == '-';
  };
  return std::all_of(detail.key.begin(), detail.key.end(), in_key) &&
         std::all_of(detail.value.begin(), detail.value.end(), in_value);
}

// Splits the details off the end of a label and returns the rest, the whole name.
std::string_view take_details(std::string_view label, Activity& activity) {
  while (activity.num_details < Activity::kMaxDetails) {
    const size_t space = label.rfind(' ');
    Detail detail;
    if (!read_detail(label.substr(space == kNpos ? 0 : space + 1), detail)) break;
    activity.details[activity.num_details++] = detail;
    label = label.substr(0, space == kNpos ? 0 : space);
  }
  std::reverse(activity.details.begin(), activity.details.begin() + static_cast<std::ptrdiff_t>(activity.num_details));
  return label;
}

// The end of the op in `op:kernel`; kNpos if the name is only that of a kernel. A C++ name that was not shortened has
// scopes in its arguments, whose colons are no separators.
size_t op_end(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == kNpos || colon + 1 == name.size()) return kNpos;
  const bool is_only = name.find(':') == colon;
  return is_only || name.find_first_of("<>()", colon) == kNpos ? colon : kNpos;
}

// Takes name and op from the positions that the writer of the node recorded; returns false if it recorded none.
bool take_recorded_op(const Node& node, Activity& activity) {
  const std::string_view name = node.name;
  if (node.op_end != 0) {
    if (node.op_end >= name.size()) return false;
    activity.op = name.substr(0, node.op_end);
    activity.name = name.substr(node.op_end + 1);
    return true;
  }
  const size_t half = name.size() / 2;
  if (name.size() % 2 == 0 || name[half] != ':' || name.substr(0, half) != name.substr(half + 1)) return false;
  activity.name = name.substr(half + 1);
  return true;
}

// Splits `op:kernel`.
void parse_name(std::string_view name, Activity& activity) {
  activity.name = name;
  const size_t colon = op_end(name);
  if (colon == kNpos) return;
  activity.name = name.substr(colon + 1);
  activity.op = name.substr(0, colon > 0 && name[colon - 1] == ':' ? colon - 1 : colon);
  if (activity.op == activity.name) activity.op = {};
}

// Takes the whole name of a kernel, which is empty for one without a name.
void take_whole_name(std::string_view whole_name, Activity& activity) {
  activity.is_unnamed = whole_name.empty() && activity.name == kNoName;
  activity.full_name = whole_name == activity.name ? std::string_view() : whole_name;
}

void clear(Activity& activity) {
  for (std::string_view Activity::* text :
       {&Activity::full_name, &Activity::op, &Activity::inputs, &Activity::copy_kind, &Activity::from, &Activity::to}) {
    activity.*text = {};
  }
  activity.num_bytes = -1;
  activity.num_details = 0;
  activity.is_typed = false;
  activity.is_unnamed = false;
}

// Reads the columns of GPU work, except for those that only become arguments.
void read_gpu_columns(const Node& node, KernelNames& names, Activity& activity) {
  using Field = ActivityField;
  const TypedActivity& columns = activity.columns;
  if (columns.kind() == TableKind::kKernel) {
    activity.category = Category::kKernel;
    std::string_view whole_name = names.whole_name(columns[Field::kNameId]);
    if (whole_name.empty()) {
      whole_name = has_launch_shape(columns) ? node.label.substr(0, node.label.rfind(" regs:")) : node.label;
    }
    take_whole_name(whole_name, activity);
    return;
  }
  if (columns[Field::kNumBytes] != 0) activity.num_bytes = columns[Field::kNumBytes];
  if (columns.kind() == TableKind::kMemcpy) {
    activity.category = Category::kMemcpy;
    activity.copy_kind = copy_kind_text(columns[Field::kCopyKind]);
    activity.from = memory_kind_text(columns[Field::kSrcKind]);
    activity.to = memory_kind_text(columns[Field::kDstKind]);
  } else {
    activity.category = Category::kMemset;
    activity.to = memory_kind_text(columns[Field::kMemoryKind]);
  }
}

// Reads the node's columns; returns false if it has none.
bool read_columns(const Node& node, Activity& activity) {
  if (node.activity.empty()) return false;
  activity.columns.read(node.activity);
  return activity.is_typed = true;
}

bool is_gpu_work(TableKind kind) {
  return kind == TableKind::kKernel || kind == TableKind::kMemcpy || kind == TableKind::kMemset;
}

// Whether a call waits: "cudaStreamSynchronize", "cuStreamWaitEvent", and also "Stream Sync" and "Stream Wait Event",
// PyTorch's names for the GPU side of such calls.
bool is_waiting(std::string_view name) {
  return contains(name, "Synchronize") || contains(name, "WaitEvent") || contains(name, " Sync") ||
         contains(name, "Wait Event");
}

bool is_api_name(std::string_view name) {
  return starts_with(name, "cu") && ((name.size() > 2 && is_upper(name[2])) ||
                                     (starts_with(name, "cuda") && name.size() > 4 && is_upper(name[4])));
}

}  // namespace

Span span_of(const Node& node) {
  Span span{node.start_ns, node.end_rel_ns};
  if (node.start_ns == 0 && __builtin_mul_overflow(node.start_us, int64_t{1000}, &span.start_ns)) return {};
  // A duration of 0 ns is 1 µs in the other field, because TensorFlow shows no shorter one.
  const bool is_rounded_up = node.start_ns != 0 && node.end_rel_us <= 1;
  if (node.end_rel_ns == 0 && !is_rounded_up &&
      __builtin_mul_overflow(node.end_rel_us, int64_t{1000}, &span.duration_ns)) {
    return {};
  }
  return span;
}

int64_t scheduled_ns_of(const Node& node) {
  if (node.scheduled_ns != 0) return node.scheduled_ns;
  int64_t scheduled_ns;
  return __builtin_mul_overflow(node.scheduled_us, int64_t{1000}, &scheduled_ns) ? 0 : scheduled_ns;
}

void read_gpu_activity(const Node& node, KernelNames& names, Activity& activity) {
  clear(activity);
  const bool has_columns = is_gpu_work(kind_of(node.activity));
  if (kind_of(node.activity) == TableKind::kGraphLaunch) {
    activity.name = node.name;
    activity.category = Category::kOther;
    read_columns(node, activity);
    return;
  }
  std::string_view label = node.label;
  std::string_view name = node.name;
  if (const size_t at = label.find("@@"); at != kNpos && !has_columns) {  // TensorFlow: the kernel, @@, the annotation
    name = label.substr(at + 2);
    name = name.substr(0, name.find('#'));
    label = label.substr(0, at);
    if (name.empty()) name = node.name;
  }
  if (!has_columns || !take_recorded_op(node, activity)) parse_name(name, activity);
  if (has_columns && read_columns(node, activity)) return read_gpu_columns(node, names, activity);
  const std::string_view kind = activity.name;
  if (starts_with(kind, "MEMCPY") || starts_with(kind, "Memcpy")) {
    activity.category = Category::kMemcpy;
    activity.copy_kind = copy_kind(kind);
    read_bytes_label(kind, label, activity);
    take_details(label, activity);
  } else if (starts_with(kind, "MEMSET") || starts_with(kind, "Memset")) {
    activity.category = Category::kMemset;
    read_bytes_label(kind, label, activity);
    take_details(label, activity);
  } else if (is_waiting(kind)) {
    activity.category = Category::kSync;
  } else {
    activity.category = Category::kKernel;
    take_whole_name(take_details(label, activity), activity);
  }
}

void read_host_activity(const Node& node, Activity& activity) {
  clear(activity);
  activity.name = node.name;
  if (read_columns(node, activity)) {
    switch (activity.columns.kind()) {
      case TableKind::kApiCall:
        activity.category = is_waiting(node.name) ? Category::kSync : Category::kApi;
        return;
      case TableKind::kSynchronization:
        activity.category = Category::kSync;
        return;
      case TableKind::kOverhead:
        activity.category = Category::kOverhead;
        return;
      default:
        if (activity.columns.kind() != TableKind::kOtherRange && side_table_of(activity.columns.kind()) == nullptr)
          break;
        activity.category = Category::kOther;
        return;
    }
  }
  if (!activity.is_typed && is_api_name(node.name)) {
    activity.category = is_waiting(node.name) ? Category::kSync : Category::kApi;
    return;
  }
  activity.category = Category::kOp;
  const size_t op_begin = node.name.size() + kEquals.size();
  const size_t end = node.op_end;  // any number, in a file
  const bool is_recorded = end >= op_begin && end + 1 < node.label.size();
  const OpLabel label = is_recorded ? OpLabel{node.label.substr(op_begin, end - op_begin),
                                              node.label.substr(end + 1, node.label.size() - end - 2)}
                                    : parse_op_label(node.label);
  if (label.op != "unknown" && label.op != node.name) activity.op = label.op;
  activity.inputs = label.inputs;
}

}  // namespace collector::stepstats
