// Activity records in the layout of the simulated version, and the changes that armed faults make to them.
#include <utility>

#include "simulator/simulator.h"

namespace collector::simulator {
namespace {

using cupti::ActivityKind;

// The hardware channel of an activity; its values are arbitrary.
struct Channel {
  uint32_t id;
  uint32_t type;
};
constexpr Channel kComputeChannel{8, 1};
constexpr Channel kCopyChannel{9, 2};

// A program's activity with the values that only its record has.
struct WithContexts : SimActivity {
  uint32_t src_context_id;
  uint32_t dst_context_id;
};
struct WithPriority : SimActivity {
  int32_t priority;
};

template <typename Record>
void set_source_graph(const SimActivity& activity, int cuda, Record& record) {
  if (cuda >= 13040) record.sourceGraphId = static_cast<uint32_t>(activity.source_graph_node_id >> 32);
}

}  // namespace

// Applies the armed faults that act before an activity's record. Returns false if they suppress the record.
bool Simulator::precede(RecordBuffer& buffer) {
  if (faults.strikes(Fault::kDroppedRecord)) {
    buffers.drop();
    return false;
  }
  if (faults.strikes(Fault::kLostActivityRecord)) return false;
  int64_t value = 0;
  if (faults.strikes(Fault::kUnknownKind)) {
    std::array<uint32_t, kFutureKindBytes / 4> future{};
    future.fill(0x5A5A5A5A);
    future[0] = kFutureKind;
    buffers.append(buffer, future.data(), kFutureKindBytes);
  }
  if (faults.strikes(Fault::kInvalidKind, &value)) {
    const std::array<uint32_t, 8> invalid{static_cast<uint32_t>(value)};
    buffers.append(buffer, invalid.data(), sizeof invalid);
  }
  return true;
}

// Applies the armed faults that change an activity's record.
void Simulator::spoil(SimActivity& activity) {
  int64_t value = 0;
  if (faults.strikes(Fault::kShiftedTimestamps, &value)) {
    activity.start_ns += value;
    activity.end_ns += value;
  }
  if (faults.strikes(Fault::kReversedTimestamps)) std::swap(activity.start_ns, activity.end_ns);
  if (faults.strikes(Fault::kZeroEnd)) activity.end_ns = 0;
  const uint64_t pool = attributes_[static_cast<size_t>(cupti::Attribute::kDeviceBufferPoolLimit)].load();
  const bool dry = faults.strikes(Fault::kPoolExhausted, &value) &&
                   device_records_.fetch_add(1, std::memory_order_relaxed) >= pool * static_cast<uint64_t>(value);
  if (dry || faults.strikes(Fault::kZeroTimestamps)) activity.start_ns = activity.end_ns = 0;
  if (faults.strikes(Fault::kNullName)) activity.name = nullptr;
}

void Simulator::write_activity(SimActivity activity, RecordBuffer& buffer) {
  if (faults.any() && !precede(buffer)) return;
  const bool is_of_own_clock =
      wrong_clock_records_.load(std::memory_order_relaxed) > 0 && wrong_clock_records_.fetch_sub(1) > 0;
  const RecordClock times_of = is_of_own_clock ? RecordClock::kOwn : RecordClock::kCallbacks;
  if (faults.any()) spoil(activity);
  switch (activity.type) {
    case kSimKernel: {
      auto record = record_of<cupti::Kernel>(WithPriority{activity, stream_priority(activity.stream_id)}, times_of);
      if (!enabled(ActivityKind::kConcurrentKernel) && enabled(ActivityKind::kKernel)) {
        record.kind = static_cast<uint32_t>(ActivityKind::kKernel);
      }
      record.completed = record.end;
      record.gridId = next_grid_id_.fetch_add(1, std::memory_order_relaxed);
      record.name = activity.name;
      record.channelID = kComputeChannel.id;
      record.channelType = kComputeChannel.type;
      if (release.cuda >= 13030) record.executionModel = 1;
      set_source_graph(activity, release.cuda, record);
      if ((activity.launch & kSimLatencyStamps) != 0) {
        record.queued = record.start - static_cast<uint64_t>(config.launch_latency_ns);
        record.submitted = record.start - static_cast<uint64_t>(config.launch_latency_ns / 2);
      }
      return write(record, buffer);
    }
    case kSimMemcpy: {
      auto record = record_of<cupti::Memcpy>(activity, times_of);
      record.runtimeCorrelationId = activity.correlation_id;
      record.channelID = kCopyChannel.id;
      record.channelType = kCopyChannel.type;
      if (release.cuda >= 12080) record.copyCount = 1;
      set_source_graph(activity, release.cuda, record);
      return write(record, buffer);
    }
    case kSimPeerMemcpy: {
      const WithContexts copy{activity, activity.src_device_id + 1, activity.dst_device_id + 1};
      auto record = record_of<cupti::MemcpyPtoP>(copy, times_of);
      record.copyKind = static_cast<uint8_t>(cupti::MemcpyKind::kPtoP);
      record.channelID = kCopyChannel.id;
      record.channelType = kCopyChannel.type;
      return write(record, buffer);
    }
    default: {
      auto record = record_of<cupti::Memset>(activity, times_of);
      set_source_graph(activity, release.cuda, record);
      record.channelID = kComputeChannel.id;
      record.channelType = kComputeChannel.type;
      return write(record, buffer);
    }
  }
}

void Simulator::write(uint32_t kind, const void* record, size_t bytes, RecordBuffer& buffer) {
  if (buffers.append(buffer, record, bytes)) records_by_kind[kind].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace collector::simulator
