// Activity records, laid out as the version played has them, and what armed faults make of them.
#include <cstring>
#include <utility>

#include "simulator/simulator.h"

namespace collector::simulator {
namespace {

using cupti::ActivityKind;

constexpr uint8_t kNoise = 0xA5;  // bytes that mean nothing in the version played

}  // namespace

void Simulator::prepare_templates() {
  for (uint32_t kind = 0; kind <= kLastKind; ++kind) strides_[kind] = stride_of(kind, release.cuda);
  std::memset(&kernel_, kNoise, sizeof kernel_);
  std::memset(&memcpy_, kNoise, sizeof memcpy_);
  std::memset(&peer_memcpy_, kNoise, sizeof peer_memcpy_);
  std::memset(&memset_, kNoise, sizeof memset_);
  std::memset(&synchronization_, kNoise, sizeof synchronization_);
  std::memset(&overhead_, kNoise, sizeof overhead_);
  std::memset(&memory_operation_, kNoise, sizeof memory_operation_);

  kernel_.kind = static_cast<uint32_t>(ActivityKind::kConcurrentKernel);
  kernel_.cacheConfig = 0;
  kernel_.sharedMemoryConfig = 0;
  kernel_.partitionedGlobalCacheRequested = kernel_.partitionedGlobalCacheExecuted = 0;
  kernel_.localMemoryTotal = 0;
  kernel_.queued = kernel_.submitted = 0;
  kernel_.isSharedMemoryCarveoutRequested = kernel_.sharedMemoryCarveoutRequested = 0;
  kernel_.sharedMemoryExecuted = 0;
  kernel_.shmemLimitConfig = 0;
  kernel_.pAccessPolicyWindow = nullptr;
  kernel_.channelID = 8;
  kernel_.channelType = 1;
  kernel_.clusterSchedulingPolicy = 0;
  kernel_.localMemoryTotal_v2 = 0;
  kernel_.maxPotentialClusterSize = kernel_.maxActiveClusters = 0;

  memcpy_.kind = static_cast<uint32_t>(ActivityKind::kMemcpy);
  memcpy_.channelID = 9;
  memcpy_.channelType = 2;
  peer_memcpy_.kind = static_cast<uint32_t>(ActivityKind::kMemcpy2);
  peer_memcpy_.copyKind = static_cast<uint8_t>(cupti::MemcpyKind::kPtoP);
  peer_memcpy_.channelID = 9;
  peer_memcpy_.channelType = 2;
  memset_.kind = static_cast<uint32_t>(ActivityKind::kMemset);
  memset_.channelID = 8;
  memset_.channelType = 1;
  synchronization_.kind = static_cast<uint32_t>(ActivityKind::kSynchronization);
  overhead_.kind = static_cast<uint32_t>(ActivityKind::kOverhead);
  memory_operation_.kind = static_cast<uint32_t>(ActivityKind::kMemory2);
  memory_operation_.PC = 0;
  memory_operation_.processId = static_cast<uint32_t>(pid);
  memory_operation_.name = nullptr;
  if (release.cuda >= 12060) memory_operation_.source = nullptr;
  if (release.cuda >= 12080) {
    memcpy_.copyCount = 1;
    synchronization_.cudaEventSyncId = 0;
    synchronization_.returnValue = 0;
  }
  if (release.cuda >= 12040) overhead_.overheadData = nullptr;
  if (release.cuda >= 13000) kernel_.isDeviceLaunched = memcpy_.isDeviceLaunched = memset_.isDeviceLaunched = 0;
  if (release.cuda >= 13010) kernel_.priority = 0;
  if (release.cuda >= 13030) kernel_.executionModel = 1;
  if (release.cuda >= 13040) {
    kernel_.sourceGraphId = memcpy_.sourceGraphId = memset_.sourceGraphId = 0;
    kernel_.sourceGraphNodeId = memcpy_.sourceGraphNodeId = memset_.sourceGraphNodeId = 0;
  }
}

// What the armed faults put before an activity's record. False: they take the record itself.
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

// What the armed faults do to an activity's record.
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
  if (activity.start_ns != 0 || activity.end_ns != 0) {
    int64_t offset = timestamp_offset_ns_.load(std::memory_order_relaxed);
    if (wrong_clock_records_.load(std::memory_order_relaxed) > 0 && wrong_clock_records_.fetch_sub(1) > 0) {
      offset = -boot_ns_;
    }
    activity.start_ns += offset;
    if (activity.end_ns != 0) activity.end_ns += offset;
  }
  if (faults.any()) spoil(activity);
  const auto start = static_cast<uint64_t>(activity.start_ns);
  const auto end = static_cast<uint64_t>(activity.end_ns);
  switch (activity.type) {
    case kSimKernel: {
      cupti::Kernel record = kernel_;
      if (!enabled(ActivityKind::kConcurrentKernel) && enabled(ActivityKind::kKernel)) {
        record.kind = static_cast<uint32_t>(ActivityKind::kKernel);
      }
      record.start = start;
      record.end = end;
      record.completed = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.gridX = activity.grid[0];
      record.gridY = activity.grid[1];
      record.gridZ = activity.grid[2];
      record.blockX = activity.block[0];
      record.blockY = activity.block[1];
      record.blockZ = activity.block[2];
      record.clusterX = activity.cluster[0];
      record.clusterY = activity.cluster[1];
      record.clusterZ = activity.cluster[2];
      record.registersPerThread = static_cast<uint16_t>(activity.registers_per_thread);
      record.staticSharedMemory = activity.static_shared_bytes;
      record.dynamicSharedMemory = activity.dynamic_shared_bytes;
      record.localMemoryPerThread = activity.local_bytes_per_thread;
      record.correlationId = activity.correlation_id;
      record.gridId = next_grid_id_.fetch_add(1, std::memory_order_relaxed);
      record.name = activity.name;
      record.launchType = static_cast<uint8_t>(activity.launch_type);
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      if ((activity.launch & kSimLatencyStamps) != 0) {
        record.queued = start - static_cast<uint64_t>(config.launch_latency_ns);
        record.submitted = start - static_cast<uint64_t>(config.launch_latency_ns / 2);
      }
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
    case kSimMemcpy: {
      cupti::Memcpy record = memcpy_;
      record.copyKind = static_cast<uint8_t>(activity.copy_kind);
      record.srcKind = static_cast<uint8_t>(activity.src_kind);
      record.dstKind = static_cast<uint8_t>(activity.dst_kind);
      record.flags = static_cast<uint8_t>(activity.is_async);
      record.bytes = activity.num_bytes;
      record.start = start;
      record.end = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.correlationId = activity.correlation_id;
      record.runtimeCorrelationId = activity.correlation_id;
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
    case kSimPeerMemcpy: {
      cupti::MemcpyPtoP record = peer_memcpy_;
      record.srcKind = static_cast<uint8_t>(activity.src_kind);
      record.dstKind = static_cast<uint8_t>(activity.dst_kind);
      record.flags = static_cast<uint8_t>(activity.is_async);
      record.bytes = activity.num_bytes;
      record.start = start;
      record.end = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.srcDeviceId = activity.src_device_id;
      record.srcContextId = activity.src_device_id + 1;
      record.dstDeviceId = activity.dst_device_id;
      record.dstContextId = activity.dst_device_id + 1;
      record.correlationId = activity.correlation_id;
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
    default: {
      cupti::Memset record = memset_;
      record.value = activity.value;
      record.bytes = activity.num_bytes;
      record.start = start;
      record.end = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.correlationId = activity.correlation_id;
      record.flags = static_cast<uint16_t>(activity.is_async);
      record.memoryKind = static_cast<uint16_t>(activity.memory_kind);
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
  }
}

void Simulator::write(uint32_t kind, const void* record, size_t bytes, RecordBuffer& buffer) {
  if (buffers.append(buffer, record, bytes)) records_by_kind[kind].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace collector::simulator
