// The allocations and frees of the simulated program: their calls, and CUPTI's records of them.
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
  store::MemoryOperationRow row{};
  row.operation = static_cast<uint8_t>(type);
  row.memory_kind = static_cast<uint8_t>(block.kind);
  row.correlation_id = call.correlation_id;
  row.address = block.address;
  row.num_bytes = block.bytes;
  row.start_ns = call.start_ns;
  row.device_id = block.device;
  row.context_id = block.device + 1;
  row.stream_id = stream >= 0 ? static_cast<uint32_t>(stream) : kNoStream;
  row.is_async = stream >= 0 ? 1 : 0;
  if (block.is_pooled) {
    row.pool_type = static_cast<uint8_t>(cupti::MemoryPoolType::kLocal);
    row.pool_address = block.pool.address;
    row.pool_bytes = block.pool.bytes;
    row.pool_used_bytes = block.pool.used;
  }
  auto record = record_of<cupti::Memory>(row);
  record.processId = static_cast<uint32_t>(pid);
  if (!block.is_pooled) record.memoryPoolConfigAddress = kNoise;  // only the type shows that there is no pool
  write(record, buffer_of(thread()));
}

}  // namespace collector::simulator
