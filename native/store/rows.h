// One row per activity, as small as its columns allow. Device, context and stream of kernels, copies and sets are
// not here: rows of one stream share a chunk, and the chunk knows them.
#pragma once

#include <cstdint>

namespace collector::store {

struct KernelRow {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t graph_node_id;
  uint32_t correlation_id;
  uint32_t name_id;
  int32_t grid_x, grid_y, grid_z;
  int32_t block_x, block_y, block_z;
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t graph_id;
  uint16_t registers_per_thread;
  uint8_t cluster_x, cluster_y, cluster_z;  // at most 16 blocks
  uint8_t launch_type;
};
static_assert(sizeof(KernelRow) == 80);

struct MemcpyRow {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t num_bytes;
  uint64_t graph_node_id;
  uint32_t correlation_id;
  uint32_t graph_id;
  uint32_t src_device_id, src_context_id;
  uint32_t dst_device_id, dst_context_id;
  uint8_t copy_kind, src_kind, dst_kind;
  uint8_t is_async;
};

struct MemsetRow {
  int64_t start_ns;
  int64_t end_ns;
  uint64_t num_bytes;
  uint64_t graph_node_id;
  uint32_t correlation_id;
  uint32_t graph_id;
  uint32_t value;
  uint8_t memory_kind;
  uint8_t is_async;
};

struct ApiCallRow {
  int64_t start_ns;
  int64_t end_ns;
  uint32_t callback_id;
  uint32_t process_id;
  uint32_t thread_id;
  uint32_t correlation_id;
  uint32_t return_value;
  uint8_t domain;  // cupti::CallbackDomain
};

struct ExternalCorrelationRow {
  uint64_t external_id;
  uint32_t correlation_id;
  uint8_t external_kind;
};

struct SynchronizationRow {
  int64_t start_ns;
  int64_t end_ns;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint32_t event_id;
  uint32_t return_value;
  uint8_t sync_type;
};

struct OverheadRow {
  int64_t start_ns;
  int64_t end_ns;
  uint32_t overhead_kind;
  uint32_t process_id, thread_id;             // set where the object is a process or thread
  uint32_t device_id, context_id, stream_id;  // set where it is a device, context or stream
  uint32_t correlation_id;
  uint8_t object_kind;
};

struct MemoryOperationRow {
  int64_t start_ns;
  uint64_t address;
  uint64_t num_bytes;
  uint64_t pool_address;
  uint64_t pool_bytes, pool_used_bytes;  // of a pool of this process; another's sizes are not told
  uint32_t device_id, context_id, stream_id;
  uint32_t correlation_id;
  uint32_t name_id;
  uint8_t operation;  // cupti::MemoryOperationType
  uint8_t memory_kind;
  uint8_t is_async;
  uint8_t pool_type;
};

struct AnnotationRow {
  int64_t start_ns;
  int64_t end_ns;  // 0 while open
  uint64_t external_id;
  uint32_t path_id;  // index into the paths of the same session's AnnotationLog
  uint32_t thread_id;
  uint16_t depth;
  uint32_t details_id;  // what else the program said of it, by the number that the program gave; 0: nothing
};

}  // namespace collector::store
