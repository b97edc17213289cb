#include "stepstats/activity.h"

#include <algorithm>
#include <charconv>

#include "stepstats/labels.h"

namespace collector::convert {
namespace {

constexpr auto npos = std::string_view::npos;

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }
bool IsLower(char letter) { return letter >= 'a' && letter <= 'z'; }
bool IsUpper(char letter) { return letter >= 'A' && letter <= 'Z'; }

// "MEMCPYHtoD" says its kind; "MemcpyH2D", as TensorFlow's later tracers have it, says the same.
std::string_view CopyKind(std::string_view name) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kShort = {
      {{"H2D", "HtoD"}, {"D2H", "DtoH"}, {"D2D", "DtoD"}, {"P2P", "PtoP"}, {"H2H", "HtoH"}}};
  const std::string_view kind = name.substr(6);
  for (const auto& [written, meant] : kShort) {
    if (kind == written) return meant;
  }
  return kind.empty() ? "unknown" : kind;
}

// "4096 bytes (Pageable to Device)" or "4096 bytes (Device)" behind the name of a copy or memset; "4096 bytes" or
// "(Pageable to Device)" alone.
void ReadBytesLabel(std::string_view name, std::string_view label, Activity& activity) {
  size_t end = label.find(" bytes");
  if (end == npos) {  // of unknown size
    if (!StartsWith(label, name) || label.substr(name.size(), 2) != " (") return;
    end = name.size();
  } else {
    size_t start = end;
    while (start > 0 && IsDigit(label[start - 1])) --start;
    int64_t num_bytes = 0;
    const auto [stop, error] = std::from_chars(label.data() + start, label.data() + end, num_bytes);
    if (error != std::errc() || stop == label.data() + start) return;
    activity.num_bytes = num_bytes;
  }
  const size_t open = label.find('(', end);
  const size_t close = label.find(')', end);
  if (open == npos || close == npos || close < open) return;
  const std::string_view kinds = label.substr(open + 1, close - open - 1);
  const size_t to = kinds.find(" to ");
  if (to == npos) {
    activity.to = kinds;
  } else {
    activity.from = kinds.substr(0, to);
    activity.to = kinds.substr(to + 4);
  }
}

// Whether a word is `key:value` as tracers write behind a kernel's name. What a C++ name may hold, such as `std::pair`,
// is not.
bool ReadDetail(std::string_view word, Detail& detail) {
  const size_t colon = word.find(':');
  if (colon == 0 || colon == npos || colon + 1 == word.size()) return false;
  detail = {word.substr(0, colon), word.substr(colon + 1)};
  const auto in_key = [](char c) { return IsLower(c) || c == '_'; };
  const auto in_value = [](char c) {
    return IsDigit(c) || IsLower(c) || IsUpper(c) || c == '_' || c == ',' || c == '.' || c == '-';
  };
  return std::all_of(detail.key.begin(), detail.key.end(), in_key) &&
         std::all_of(detail.value.begin(), detail.value.end(), in_value);
}

// Takes the details off the end of a label; what is left is the whole name.
std::string_view TakeDetails(std::string_view label, Activity& activity) {
  while (activity.num_details < Activity::kMaxDetails) {
    const size_t space = label.rfind(' ');
    Detail detail;
    if (!ReadDetail(label.substr(space == npos ? 0 : space + 1), detail)) break;
    activity.details[activity.num_details++] = detail;
    label = label.substr(0, space == npos ? 0 : space);
  }
  std::reverse(activity.details.begin(), activity.details.begin() + static_cast<std::ptrdiff_t>(activity.num_details));
  return label;
}

// Where the op of `op:kernel` ends; npos in the name of a kernel alone. A C++ name that was not shortened has scopes
// among its arguments, whose colons separate nothing.
size_t OpEnd(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == npos || colon + 1 == name.size()) return npos;
  const bool is_only = name.find(':') == colon;
  return is_only || name.find_first_of("<>()", colon) == npos ? colon : npos;
}

void Clear(Activity& activity) {
  for (std::string_view Activity::* text :
       {&Activity::full_name, &Activity::op, &Activity::inputs, &Activity::copy_kind, &Activity::from, &Activity::to}) {
    activity.*text = {};
  }
  activity.num_bytes = -1;
  activity.num_details = 0;
  activity.is_typed = false;
}

// What the columns say of work of a GPU, but for what becomes an argument alone.
void ReadGpuColumns(const Node& node, Activity& activity) {
  using Field = ActivityField;
  const TypedActivity& columns = activity.columns;
  if (columns.kind() == TableKind::kKernel) {
    activity.category = Category::kKernel;
    activity.full_name = node.label.substr(0, node.label.rfind(" regs:"));
    if (activity.full_name == activity.name) activity.full_name = {};
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

// Whether the node has columns, which are read.
bool ReadColumns(const Node& node, Activity& activity) {
  if (node.activity.empty()) return false;
  activity.columns.Read(node.activity);
  return activity.is_typed = true;
}

bool IsGpuWork(TableKind kind) {
  return kind == TableKind::kKernel || kind == TableKind::kMemcpy || kind == TableKind::kMemset;
}

// "cudaStreamSynchronize", "cuStreamWaitEvent", and "Stream Sync", "Stream Wait Event" as PyTorch's profiler calls what
// they make of the GPU.
bool IsWaiting(std::string_view name) {
  return Contains(name, "Synchronize") || Contains(name, "WaitEvent") || Contains(name, " Sync") ||
         Contains(name, "Wait Event");
}

bool IsApiName(std::string_view name) {
  return StartsWith(name, "cu") &&
         ((name.size() > 2 && IsUpper(name[2])) || (StartsWith(name, "cuda") && name.size() > 4 && IsUpper(name[4])));
}

}  // namespace

Span SpanOf(const Node& node) {
  if (node.start_ns != 0) return {node.start_ns, node.end_rel_ns};
  Span span;
  if (__builtin_mul_overflow(node.start_us, int64_t{1000}, &span.start_ns) ||
      __builtin_mul_overflow(node.end_rel_us, int64_t{1000}, &span.duration_ns)) {
    return {};
  }
  return span;
}

int64_t ScheduledNs(const Node& node) {
  if (node.scheduled_ns != 0) return node.scheduled_ns;
  int64_t scheduled_ns;
  return __builtin_mul_overflow(node.scheduled_us, int64_t{1000}, &scheduled_ns) ? 0 : scheduled_ns;
}

void ReadGpuActivity(const Node& node, Activity& activity) {
  Clear(activity);
  std::string_view label = node.label;
  std::string_view name = node.name;
  if (const size_t at = label.find("@@"); at != npos) {  // TensorFlow: the kernel, @@, the annotation
    name = label.substr(at + 2);
    name = name.substr(0, name.find('#'));
    label = label.substr(0, at);
    if (name.empty()) name = node.name;
  }
  activity.name = name;
  if (const size_t colon = OpEnd(name); colon != npos) {
    activity.name = name.substr(colon + 1);
    activity.op = name.substr(0, colon > 0 && name[colon - 1] == ':' ? colon - 1 : colon);
    if (activity.op == activity.name) activity.op = {};
  }
  if (IsGpuWork(KindOf(node.activity)) && ReadColumns(node, activity)) return ReadGpuColumns(node, activity);
  const std::string_view kind = activity.name;
  if (StartsWith(kind, "MEMCPY") || StartsWith(kind, "Memcpy")) {
    activity.category = Category::kMemcpy;
    activity.copy_kind = CopyKind(kind);
    ReadBytesLabel(kind, label, activity);
    TakeDetails(label, activity);
  } else if (StartsWith(kind, "MEMSET") || StartsWith(kind, "Memset")) {
    activity.category = Category::kMemset;
    ReadBytesLabel(kind, label, activity);
    TakeDetails(label, activity);
  } else if (IsWaiting(kind)) {
    activity.category = Category::kSync;
  } else {
    activity.category = Category::kKernel;
    activity.full_name = TakeDetails(label, activity);
    if (activity.full_name == activity.name) activity.full_name = {};
  }
}

void ReadHostActivity(const Node& node, Activity& activity) {
  Clear(activity);
  activity.name = node.name;
  if (ReadColumns(node, activity)) {
    switch (activity.columns.kind()) {
      case TableKind::kApiCall:
        activity.category = IsWaiting(node.name) ? Category::kSync : Category::kApi;
        return;
      case TableKind::kSynchronization:
        activity.category = Category::kSync;
        return;
      case TableKind::kOverhead:
        activity.category = Category::kOverhead;
        return;
      case TableKind::kMemoryOperation:
        activity.category = Category::kOther;
        return;
      default:
        break;
    }
  }
  if (!activity.is_typed && IsApiName(node.name)) {
    activity.category = IsWaiting(node.name) ? Category::kSync : Category::kApi;
    return;
  }
  activity.category = Category::kOp;
  const OpLabel label = ParseOpLabel(node.label);
  if (label.op != "unknown" && label.op != node.name) activity.op = label.op;
  activity.inputs = label.inputs;
}

}  // namespace collector::convert
