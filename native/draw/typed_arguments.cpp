#include "draw/typed_arguments.h"

#include <string_view>
#include <utility>

namespace collector::convert {
namespace {

using Field = ActivityField;

class Writer {
 public:
  Writer(const TypedActivity& activity, std::vector<Argument>& arguments, std::list<std::string>& texts)
      : activity_(activity), arguments_(arguments), texts_(texts) {}

  void Number(std::string_view key, int64_t number) {
    arguments_.push_back({key, Argument::Kind::kNumber, number, {}});
  }
  void Number(std::string_view key, Field field) { Number(key, activity_[field]); }
  // Left out where it is 0, which says nothing.
  void NumberIfAny(std::string_view key, Field field) {
    if (activity_[field] != 0) Number(key, field);
  }
  void Text(std::string_view key, std::string_view text) {
    arguments_.push_back({key, Argument::Kind::kText, 0, text});
  }
  void OwnText(std::string_view key, std::string text) { Text(key, texts_.emplace_back(std::move(text))); }
  void Triple(std::string_view key, Field first) {
    std::string text;
    for (uint32_t place = 0; place < 3; ++place) {
      if (place > 0) text.push_back(',');
      text.append(std::to_string(activity_.At(first, place)));
    }
    arguments_.push_back({key, Argument::Kind::kNumbers, 0, texts_.emplace_back(std::move(text))});
  }

  void Kernel() {
    Number("registers", Field::kRegistersPerThread);
    Number("shared_bytes", activity_[Field::kStaticSharedBytes] + activity_[Field::kDynamicSharedBytes]);
    Triple("grid", Field::kGridX);
    Triple("block", Field::kBlockX);
    NumberIfAny("static_shared_bytes", Field::kStaticSharedBytes);
    NumberIfAny("dynamic_shared_bytes", Field::kDynamicSharedBytes);
    NumberIfAny("local_bytes_per_thread", Field::kLocalBytesPerThread);
    // One block is a cluster of its own, which says nothing.
    if (activity_.At(Field::kClusterX, 0) * activity_.At(Field::kClusterX, 1) * activity_.At(Field::kClusterX, 2) > 1) {
      Triple("cluster", Field::kClusterX);
    }
    if (activity_[Field::kLaunchType] != 0) {
      Text("launch_type", launch_type_text(activity_[Field::kLaunchType]));
    }
    NumberIfAny("priority", Field::kPriority);
    Graph();
  }
  void Copy() {
    Number("is_async", Field::kIsAsync);
    Graph();
  }
  void Memset() {
    Number("value", Field::kValue);
    Number("is_async", Field::kIsAsync);
    Graph();
  }
  // What was waited for, and where to find it.
  void Wait() {
    enum Type { kEvent = 1, kStreamWaitsForEvent = 2, kStream = 3, kContext = 4 };
    const int64_t type = activity_[Field::kSyncType];
    if (type == kEvent || type == kStreamWaitsForEvent) OwnText("waited_for", NumberedBy("event ", Field::kEventId));
    if (type == kStream) OwnText("waited_for", NumberedBy("stream ", Field::kStreamId));
    if (type == kContext) OwnText("waited_for", NumberedBy("context ", Field::kContextId));
    constexpr int64_t kNone = UINT32_MAX;  // as CUPTI states that there is no event or stream
    if (activity_[Field::kEventId] != kNone) NumberIfAny("event", Field::kEventId);
    if (activity_[Field::kStreamId] != kNone) Number("stream", Field::kStreamId);
    Number("context", Field::kContextId);
    NumberIfAny("return_value", Field::kReturnValue);
  }
  void Overhead() {
    enum Object { kProcess = 1, kThread = 2, kDevice = 3, kContext = 4, kStream = 5 };
    const int64_t object = activity_[Field::kObjectKind];
    if (object == kProcess || object == kThread) Number("process", Field::kProcessId);
    if (object == kThread) Number("thread", Field::kThreadId);
    if (object >= kDevice) Number("device", Field::kDeviceId);
    if (object >= kContext) Number("context", Field::kContextId);
    if (object >= kStream) Number("stream", Field::kStreamId);
  }
  void MemoryOperation() {
    NumberIfAny("bytes", Field::kNumBytes);
    Text("memory", memory_kind_text(activity_[Field::kMemoryKind]));
    Number("device", Field::kDeviceId);
    OwnText("address", Hexadecimal(static_cast<uint64_t>(activity_[Field::kAddress])));
  }
  void Call() { NumberIfAny("return_value", Field::kReturnValue); }

 private:
  void Graph() {
    NumberIfAny("graph", Field::kGraphId);
    NumberIfAny("graph_node", Field::kGraphNodeId);
  }
  std::string NumberedBy(std::string_view what, Field field) const {
    return std::string(what) + std::to_string(activity_[field]);
  }
  static std::string Hexadecimal(uint64_t number) {
    std::string text;
    do {
      text.insert(text.begin(), "0123456789abcdef"[number % 16]);
      number /= 16;
    } while (number != 0);
    return "0x" + text;
  }

  const TypedActivity& activity_;
  std::vector<Argument>& arguments_;
  std::list<std::string>& texts_;
};

}  // namespace

void AddTypedArguments(const TypedActivity& activity, std::vector<Argument>& arguments, std::list<std::string>& texts) {
  Writer writer(activity, arguments, texts);
  switch (activity.kind()) {
    case TableKind::kKernel:
      return writer.Kernel();
    case TableKind::kMemcpy:
      return writer.Copy();
    case TableKind::kMemset:
      return writer.Memset();
    case TableKind::kSynchronization:
      return writer.Wait();
    case TableKind::kOverhead:
      return writer.Overhead();
    case TableKind::kMemoryOperation:
      return writer.MemoryOperation();
    case TableKind::kApiCall:
      return writer.Call();
    default:
      return;
  }
}

}  // namespace collector::convert
