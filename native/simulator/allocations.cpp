// Memory that the simulated program allocates and frees: the calls, and CUPTI's records of them.
#include "simulator/simulator.h"

namespace collector::simulator {
namespace {

using cupti::ActivityKind;

constexpr uint32_t kNoStream = 0xFFFFFFFF;  // CUPTI_INVALID_STREAM_ID

}  // namespace

uint64_t Simulator::allocate(uint32_t device, uint64_t bytes, cupti::MemoryKind kind, int64_t stream, uint32_t launch) {
  const auto block = memory.allocate(device, bytes, kind, stream >= 0);
  if (!block) return 0;
  const bool managed = kind == cupti::MemoryKind::kManaged;
  const bool pinned = kind == cupti::MemoryKind::kPinned;
  const uint32_t runtime_id = stream >= 0 ? callback_id("cudaMallocAsync_v11020")
                              : managed   ? callback_id("cudaMallocManaged_v6000")
                              : pinned    ? callback_id("cudaHostAlloc_v3020")
                                          : callback_id("cudaMalloc_v3020");
  const uint32_t driver_id = stream >= 0 ? callback_id("cuMemAllocAsync")
                             : managed   ? callback_id("cuMemAllocManaged")
                             : pinned    ? callback_id("cuMemHostAlloc")
                                         : callback_id("cuMemAlloc_v2");
  const ApiCall call =
      begin_call((launch & kSimRuntimeCall) != 0 ? runtime_id : 0, (launch & kSimDriverCall) != 0 ? driver_id : 0);
  write_memory_operation(cupti::MemoryOperationType::kAllocation, *block, call, stream);
  end_call(call);
  return block->address;
}

bool Simulator::free(uint64_t address, int64_t stream, uint32_t launch) {
  const auto block = memory.free(address);
  if (!block) return false;
  const bool pinned = block->kind == cupti::MemoryKind::kPinned;
  const uint32_t runtime_id = stream >= 0 ? callback_id("cudaFreeAsync_v11020")
                              : pinned    ? callback_id("cudaFreeHost_v3020")
                                          : callback_id("cudaFree_v3020");
  const uint32_t driver_id = stream >= 0 ? callback_id("cuMemFreeAsync")
                             : pinned    ? callback_id("cuMemFreeHost")
                                         : callback_id("cuMemFree_v2");
  const ApiCall call =
      begin_call((launch & kSimRuntimeCall) != 0 ? runtime_id : 0, (launch & kSimDriverCall) != 0 ? driver_id : 0);
  write_memory_operation(cupti::MemoryOperationType::kRelease, *block, call, stream);
  end_call(call);
  return true;
}

void Simulator::write_memory_operation(cupti::MemoryOperationType type, const MemoryBlock& block, const ApiCall& call,
                                       int64_t stream) {
  if (!enabled(ActivityKind::kMemory2)) return;
  cupti::Memory record = memory_operation_;
  record.memoryOperationType = static_cast<uint32_t>(type);
  record.memoryKind = static_cast<uint32_t>(block.kind);
  record.correlationId = call.correlation_id;
  record.address = block.address;
  record.bytes = block.bytes;
  record.timestamp = static_cast<uint64_t>(call.start_ns + timestamp_offset_ns_.load(std::memory_order_relaxed));
  record.deviceId = block.device;
  record.contextId = block.device + 1;
  record.streamId = stream >= 0 ? static_cast<uint32_t>(stream) : kNoStream;
  record.isAsync = stream >= 0 ? 1 : 0;
  if (block.is_pooled) {
    record.poolType = static_cast<uint32_t>(cupti::MemoryPoolType::kLocal);
    record.poolAddress = block.pool.address;
    record.poolReleaseThreshold = 0;
    record.poolSizeOrProcess = block.pool.bytes;
    record.poolUtilizedSize = block.pool.used;
  } else {
    record.poolType = static_cast<uint32_t>(cupti::MemoryPoolType::kInvalid);
  }
  write(record.kind, &record, strides_[record.kind], buffer_of(thread()));
}

}  // namespace collector::simulator
