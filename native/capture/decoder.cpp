#include "capture/decoder.h"

#include <algorithm>
#include <cstdlib>

namespace collector::capture {
namespace {

using cupti::ActivityKind;

constexpr uint8_t kAsyncFlag = 1;  // CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, and _MEMSET_ASYNC
constexpr uint32_t kSmallestRecord = 16;

int64_t as_time(uint64_t ns) { return static_cast<int64_t>(ns); }

uint8_t small(uint32_t value) { return static_cast<uint8_t>(std::min<uint32_t>(value, 255)); }

// What copies within a device and between devices have in common.
template <typename Record>
void read_copy(const Record& record, store::MemcpyRow& row) {
  row.start_ns = as_time(record.start);
  row.end_ns = as_time(record.end);
  row.num_bytes = record.bytes;
  row.graph_node_id = record.graphNodeId;
  row.correlation_id = record.correlationId;
  row.graph_id = record.graphId;
  row.copy_kind = record.copyKind;
  row.src_kind = record.srcKind;
  row.dst_kind = record.dstKind;
  row.is_async = record.flags & kAsyncFlag;
}

}  // namespace

Decoder::Decoder(const cupti::Library& library, store::Store& store) : library_(library), store_(store) {
  for (uint32_t kind = 0; kind < std::size(strides_); ++kind) {
    strides_[kind] = library_.stride(static_cast<ActivityKind>(kind));
  }
  has_sync_result_ = library_.cuda_version() >= 12080;
  has_overhead_correlation_ = library_.cuda_version() >= 12030;
  owns_overhead_data_ = library_.cuda_version() >= 12040;
}

void Decoder::decode(uint8_t* data, size_t valid) {
  constexpr uint32_t kKernel = static_cast<uint32_t>(ActivityKind::kConcurrentKernel);
  const size_t kernel_stride = strides_[kKernel];
  store_.strings.next_buffer();
  size_t at = 0;
  while (valid - at >= kSmallestRecord) {
    uint32_t kind = *reinterpret_cast<const uint32_t*>(data + at);
    // Kernels come in long runs; a run is read without asking anything again.
    while (kind == kKernel && kernel_stride != 0 && valid - at >= kernel_stride) {
      __builtin_prefetch(data + at + 4 * kernel_stride);
      read_kernel(*reinterpret_cast<const cupti::Kernel*>(data + at));
      ++counts_.records;
      at += kernel_stride;
      if (valid - at < kSmallestRecord) break;
      kind = *reinterpret_cast<const uint32_t*>(data + at);
    }
    if (valid - at < kSmallestRecord) break;
    const size_t bytes = step(data, at, valid, kind);
    if (bytes == 0) break;
    read(kind, data + at);
    ++counts_.records;
    at += bytes;
  }
  counts_.bytes_unparsed += valid - at;
}

size_t Decoder::step(uint8_t* data, size_t at, size_t valid, uint32_t kind) {
  if (kind < std::size(strides_) && strides_[kind] != 0) return valid - at >= strides_[kind] ? strides_[kind] : 0;
  const auto next_record = library_.cupti().ActivityGetNextRecord;
  if (next_record == nullptr) return 0;
  // GetNextRecord checks the record it returns, not the one it is given: it must be walked from the front of what
  // is left, once to accept this record and once to find the one behind it.
  uint8_t* record = nullptr;
  uint8_t* const rest = data + at;
  if (next_record(rest, valid - at, &record) != cupti::Result::kSuccess || record != rest) return 0;
  const cupti::Result result = next_record(rest, valid - at, &record);
  if (result == cupti::Result::kMaxLimitReached) return valid - at;  // it was the last one
  if (result != cupti::Result::kSuccess || record <= rest) return 0;
  return static_cast<size_t>(record - rest);
}

void Decoder::read(uint32_t kind, const uint8_t* record) {
  switch (static_cast<ActivityKind>(kind)) {
    case ActivityKind::kKernel:
    case ActivityKind::kConcurrentKernel:
      return read_kernel(*reinterpret_cast<const cupti::Kernel*>(record));
    case ActivityKind::kMemcpy:
      return read_memcpy(*reinterpret_cast<const cupti::Memcpy*>(record));
    case ActivityKind::kMemcpy2:
      return read_memcpy_peer(*reinterpret_cast<const cupti::MemcpyPtoP*>(record));
    case ActivityKind::kMemset:
      return read_memset(*reinterpret_cast<const cupti::Memset*>(record));
    case ActivityKind::kDriver:
      return read_api(*reinterpret_cast<const cupti::Api*>(record), cupti::CallbackDomain::kDriverApi);
    case ActivityKind::kRuntime:
      return read_api(*reinterpret_cast<const cupti::Api*>(record), cupti::CallbackDomain::kRuntimeApi);
    case ActivityKind::kExternalCorrelation:
      return read_external_correlation(*reinterpret_cast<const cupti::ExternalCorrelation*>(record));
    case ActivityKind::kSynchronization:
      return read_synchronization(*reinterpret_cast<const cupti::Synchronization*>(record));
    case ActivityKind::kOverhead:
      return read_overhead(*reinterpret_cast<const cupti::Overhead*>(record));
    case ActivityKind::kMemory2:
      return read_memory(*reinterpret_cast<const cupti::Memory*>(record));
    case ActivityKind::kInvalid:
      break;
  }
  ++counts_.unknown_kinds;
}

void Decoder::read_kernel(const cupti::Kernel& record) {
  store::KernelRow& row = store_.stream({record.deviceId, record.contextId, record.streamId}).kernels.append();
  row.start_ns = as_time(record.start);
  row.end_ns = as_time(record.end);
  row.graph_node_id = record.graphNodeId;
  row.correlation_id = record.correlationId;
  row.name_id = store_.strings.intern_address(record.name);
  row.grid_x = record.gridX;
  row.grid_y = record.gridY;
  row.grid_z = record.gridZ;
  row.block_x = record.blockX;
  row.block_y = record.blockY;
  row.block_z = record.blockZ;
  row.static_shared_bytes = record.staticSharedMemory;
  row.dynamic_shared_bytes = record.dynamicSharedMemory;
  row.local_bytes_per_thread = record.localMemoryPerThread;
  row.graph_id = record.graphId;
  row.registers_per_thread = record.registersPerThread;
  row.cluster_x = small(record.clusterX);
  row.cluster_y = small(record.clusterY);
  row.cluster_z = small(record.clusterZ);
  row.launch_type = record.launchType;
}

void Decoder::read_memcpy(const cupti::Memcpy& record) {
  store::MemcpyRow& row = store_.stream({record.deviceId, record.contextId, record.streamId}).memcpys.append();
  read_copy(record, row);
  row.src_device_id = row.dst_device_id = record.deviceId;
  row.src_context_id = row.dst_context_id = record.contextId;
}

void Decoder::read_memcpy_peer(const cupti::MemcpyPtoP& record) {
  store::MemcpyRow& row = store_.stream({record.deviceId, record.contextId, record.streamId}).memcpys.append();
  read_copy(record, row);
  row.src_device_id = record.srcDeviceId;
  row.src_context_id = record.srcContextId;
  row.dst_device_id = record.dstDeviceId;
  row.dst_context_id = record.dstContextId;
}

void Decoder::read_memset(const cupti::Memset& record) {
  store::MemsetRow& row = store_.stream({record.deviceId, record.contextId, record.streamId}).memsets.append();
  row.start_ns = as_time(record.start);
  row.end_ns = as_time(record.end);
  row.num_bytes = record.bytes;
  row.graph_node_id = record.graphNodeId;
  row.correlation_id = record.correlationId;
  row.graph_id = record.graphId;
  row.value = record.value;
  row.memory_kind = small(record.memoryKind);
  row.is_async = record.flags & kAsyncFlag;
}

void Decoder::read_api(const cupti::Api& record, cupti::CallbackDomain domain) {
  store::ApiCallRow& row = store_.api_calls.append();
  row.start_ns = as_time(record.start);
  row.end_ns = as_time(record.end);
  row.callback_id = record.cbid;
  row.process_id = record.processId;
  row.thread_id = record.threadId;
  row.correlation_id = record.correlationId;
  row.return_value = record.returnValue;
  row.domain = static_cast<uint8_t>(domain);
}

void Decoder::read_external_correlation(const cupti::ExternalCorrelation& record) {
  store::ExternalCorrelationRow& row = store_.external_correlations.append();
  row.external_id = record.externalId;
  row.correlation_id = record.correlationId;
  row.external_kind = small(record.externalKind);
}

void Decoder::read_synchronization(const cupti::Synchronization& record) {
  store::SynchronizationRow& row = store_.synchronizations.append();
  row.start_ns = as_time(record.start);
  row.end_ns = as_time(record.end);
  row.context_id = record.contextId;
  row.stream_id = record.streamId;
  row.correlation_id = record.correlationId;
  row.event_id = record.cudaEventId;
  row.return_value = has_sync_result_ ? record.returnValue : 0;
  row.sync_type = small(record.type);
}

void Decoder::read_overhead(const cupti::Overhead& record) {
  store::OverheadRow& row = store_.overheads.append();
  row = {};
  row.start_ns = as_time(record.start);
  row.end_ns = as_time(record.end);
  row.overhead_kind = record.overheadKind;
  row.object_kind = small(record.objectKind);
  switch (static_cast<cupti::ObjectKind>(record.objectKind)) {
    case cupti::ObjectKind::kProcess:
    case cupti::ObjectKind::kThread:
      row.process_id = record.objectDeviceOrProcess;
      row.thread_id = record.objectContextOrThread;
      break;
    case cupti::ObjectKind::kDevice:
    case cupti::ObjectKind::kContext:
    case cupti::ObjectKind::kStream:
      row.device_id = record.objectDeviceOrProcess;
      row.context_id = record.objectContextOrThread;
      row.stream_id = record.objectStream;
      break;
    case cupti::ObjectKind::kUnknown:
      break;
  }
  row.correlation_id = has_overhead_correlation_ ? record.correlationId : 0;
  // From 12.4 the client owns this block, which only COMMAND_BUFFER_FULL fills.
  if (owns_overhead_data_) std::free(record.overheadData);
}

void Decoder::read_memory(const cupti::Memory& record) {
  store::MemoryOperationRow& row = store_.memory_operations.append();
  row.start_ns = as_time(record.timestamp);
  row.address = record.address;
  row.num_bytes = record.bytes;
  row.device_id = record.deviceId;
  row.context_id = record.contextId;
  row.stream_id = record.streamId;
  row.correlation_id = record.correlationId;
  row.operation = small(record.memoryOperationType);
  row.memory_kind = small(record.memoryKind);
  row.is_async = record.isAsync != 0;
  row.pool_type = small(record.poolType);
  const auto pool = static_cast<cupti::MemoryPoolType>(record.poolType);
  const bool is_local = pool == cupti::MemoryPoolType::kLocal;
  row.pool_address = is_local || pool == cupti::MemoryPoolType::kImported ? record.poolAddress : 0;
  row.pool_bytes = is_local ? record.poolSizeOrProcess : 0;
  row.pool_used_bytes = is_local ? record.poolUtilizedSize : 0;
  // Only a variable of the program has a name; of other memory the pointer is not looked at.
  const auto kind = static_cast<cupti::MemoryKind>(row.memory_kind);
  const bool is_variable = kind == cupti::MemoryKind::kDeviceStatic || kind == cupti::MemoryKind::kManagedStatic;
  row.name_id = store_.strings.intern_address(is_variable ? record.name : nullptr);
}

}  // namespace collector::capture
