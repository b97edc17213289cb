#include "draw/typed_arguments.h"

#include <string_view>
#include <utility>

namespace collector::draw {

using stepstats::ActivityField;
using stepstats::ArgumentForm;
using stepstats::KernelNames;
using stepstats::TableKind;
using stepstats::TypedActivity;

namespace {

using Field = ActivityField;

class Writer {
 public:
  Writer(const TypedActivity& activity, const KernelNames& recorded, std::vector<Argument>& arguments,
         std::list<std::string>& texts)
      : activity_(activity), recorded_(recorded), arguments_(arguments), texts_(texts) {}

  void add_number(std::string_view key, int64_t number) {
    arguments_.push_back({key, Argument::Kind::kNumber, number, {}});
  }
  void add_number(std::string_view key, Field field) { add_number(key, activity_[field]); }
  // Leaves out the value 0, which means nothing.
  void add_number_if_any(std::string_view key, Field field) {
    if (activity_[field] != 0) add_number(key, field);
  }
  void add_text(std::string_view key, std::string_view text) {
    arguments_.push_back({key, Argument::Kind::kText, 0, text});
  }
  void add_text_if_any(std::string_view key, std::string_view text) {
    if (!text.empty()) add_text(key, text);
  }
  void add_recorded_text(std::string_view key, Field field) { add_text_if_any(key, recorded_.text(activity_[field])); }
  void own_text(std::string_view key, std::string text) { add_text(key, texts_.emplace_back(std::move(text))); }
  void add_triple(std::string_view key, Field first) {
    std::string text;
    for (uint32_t place = 0; place < 3; ++place) {
      if (place > 0) text.push_back(',');
      text.append(std::to_string(activity_.at(first, place)));
    }
    arguments_.push_back({key, Argument::Kind::kNumbers, 0, texts_.emplace_back(std::move(text))});
  }

  void add_kernel() {
    if (stepstats::has_launch_shape(activity_)) {
      add_number("registers", Field::kRegistersPerThread);
      add_number("shared_bytes", activity_[Field::kStaticSharedBytes] + activity_[Field::kDynamicSharedBytes]);
      add_triple("grid", Field::kGridX);
      add_triple("block", Field::kBlockX);
    }
    add_number_if_any("static_shared_bytes", Field::kStaticSharedBytes);
    add_number_if_any("dynamic_shared_bytes", Field::kDynamicSharedBytes);
    add_number_if_any("local_bytes_per_thread", Field::kLocalBytesPerThread);
    // A cluster of one block is the normal case and is left out.
    if (activity_.at(Field::kClusterX, 0) * activity_.at(Field::kClusterX, 1) * activity_.at(Field::kClusterX, 2) > 1) {
      add_triple("cluster", Field::kClusterX);
    }
    if (activity_[Field::kLaunchType] != 0) {
      add_text("launch_type", stepstats::launch_type_text(activity_[Field::kLaunchType]));
    }
    add_number_if_any("priority", Field::kPriority);
    add_graph();
  }
  void add_copy() {
    add_async();
    add_end("from_device", Field::kSrcDeviceId, "from_context", Field::kSrcContextId);
    add_end("to_device", Field::kDstDeviceId, "to_context", Field::kDstContextId);
    add_graph();
  }
  void add_memset() {
    add_number("value", Field::kValue);
    add_async();
    add_graph();
  }
  // The object of the wait and its place.
  void add_wait() {
    enum Type { kEvent = 1, kStreamWaitsForEvent = 2, kStream = 3, kContext = 4 };
    const int64_t type = activity_[Field::kSyncType];
    if (type == kEvent || type == kStreamWaitsForEvent) own_text("waited_for", numbered_by("event ", Field::kEventId));
    if (type == kStream) own_text("waited_for", numbered_by("stream ", Field::kStreamId));
    if (type == kContext) own_text("waited_for", numbered_by("context ", Field::kContextId));
    constexpr int64_t kNone = UINT32_MAX;  // CUPTI's value for no event or no stream
    if (activity_[Field::kEventId] != kNone) add_number("event", Field::kEventId);
    add_number_if_any("event_sync", Field::kEventSyncId);
    if (activity_[Field::kStreamId] != kNone) add_number("stream", Field::kStreamId);
    add_number("context", Field::kContextId);
    add_number_if_any("return_value", Field::kReturnValue);
  }
  void add_overhead() {
    enum Object { kProcess = 1, kThread = 2, kDevice = 3, kContext = 4, kStream = 5 };
    const int64_t object = activity_[Field::kObjectKind];
    if (object == kProcess || object == kThread) add_number("process", Field::kProcessId);
    if (object == kThread) add_number("thread", Field::kThreadId);
    if (object >= kDevice) add_number("device", Field::kDeviceId);
    if (object >= kContext) add_number("context", Field::kContextId);
    if (object >= kStream) add_number("stream", Field::kStreamId);
  }
  void add_nvtx_range() {
    add_text("kind", stepstats::nvtx_range_kind_text(activity_[Field::kRangeKind]));
    add_number("thread", Field::kThreadId);
    // 0: the range was still open.
    if (activity_[Field::kEndThreadId] != activity_[Field::kThreadId]) add_number("end_thread", Field::kEndThreadId);
    add_range();
  }
  // What a program states of its range.
  void add_range() {
    add_recorded_text("domain", Field::kDomainNameId);
    add_recorded_text("category", Field::kCategoryNameId);
    add_recorded_text("payload", Field::kPayloadTextId);
    if (activity_[Field::kColor] != 0) {
      own_text("color", hexadecimal(static_cast<uint64_t>(activity_[Field::kColor])));
    }
  }
  // What PyTorch's autograd states of its op.
  void add_op() {
    if (activity_[Field::kOpSequence] > 0) add_number("seq", activity_[Field::kOpSequence] - 1);
    add_recorded_text("shapes", Field::kShapesTextId);
  }
  void add_call() { add_number_if_any("return_value", Field::kReturnValue); }
  // What the description of the kind states.
  void add_described() {
    for (const stepstats::TableArgument& argument : stepstats::kTableArguments) {
      if (argument.kind == activity_.kind()) add(argument);
    }
    const stepstats::SideTable* const side = stepstats::side_table_of(activity_.kind());
    if (side == nullptr || side->text_of == nullptr) return;
    // The kind of a row whose slice has the name of any kind, because a newer CUPTI added this one.
    if (side->text_of(activity_[side->name]) == side->text_of(0)) add_number_if_any(side->name_column, side->name);
  }

 private:
  void add(const stepstats::TableArgument& argument) {
    const int64_t value = activity_[argument.field];
    switch (argument.form) {
      case ArgumentForm::kText:
        return add_recorded_text(argument.key, argument.field);
      case ArgumentForm::kKind:
        return add_text_if_any(argument.key, argument.text_of(value));
      case ArgumentForm::kHexadecimal:
        if (value != 0 || argument.is_always) own_text(argument.key, hexadecimal(static_cast<uint64_t>(value)));
        return;
      case ArgumentForm::kNumber:
        if (value != 0 || argument.is_always) add_number(argument.key, value);
        return;
    }
  }
  void add_async() {
    constexpr int64_t kNotKnown = UINT8_MAX;  // in files of other programs
    if (activity_[Field::kIsAsync] != kNotKnown) add_number("is_async", Field::kIsAsync);
  }
  // One end of a copy, where it is stated: contexts count from 1.
  void add_end(std::string_view device_key, Field device, std::string_view context_key, Field context) {
    if ((activity_[device] | activity_[context]) == 0) return;
    add_number(device_key, device);
    add_number(context_key, context);
  }
  void add_graph() {
    add_number_if_any("graph", Field::kGraphId);
    add_number_if_any("graph_node", Field::kGraphNodeId);
    add_degree();
  }
  void add_degree() { add_text_if_any("graph_degree", stepstats::graph_degree_text(activity_[Field::kGraphDegree])); }
  std::string numbered_by(std::string_view what, Field field) const {
    return std::string(what) + std::to_string(activity_[field]);
  }
  static std::string hexadecimal(uint64_t number) {
    std::string text;
    do {
      text.insert(text.begin(), "0123456789abcdef"[number % 16]);
      number /= 16;
    } while (number != 0);
    return "0x" + text;
  }

  const TypedActivity& activity_;
  const KernelNames& recorded_;
  std::vector<Argument>& arguments_;
  std::list<std::string>& texts_;
};

}  // namespace

void add_typed_arguments(const TypedActivity& activity, const KernelNames& recorded, std::vector<Argument>& arguments,
                         std::list<std::string>& texts) {
  Writer writer(activity, recorded, arguments, texts);
  switch (activity.kind()) {
    case TableKind::kKernel:
      return writer.add_kernel();
    case TableKind::kMemcpy:
      return writer.add_copy();
    case TableKind::kMemset:
      return writer.add_memset();
    case TableKind::kSynchronization:
      writer.add_wait();
      break;
    case TableKind::kOverhead:
      writer.add_overhead();
      break;
    case TableKind::kAnnotation:
      writer.add_range();
      return writer.add_op();
    case TableKind::kNvtxRange:
      return writer.add_nvtx_range();
    case TableKind::kApiCall:
      return writer.add_call();
    default:
      break;
  }
  writer.add_described();
}

}  // namespace collector::draw
