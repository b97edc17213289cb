// Records written and read through NVIDIA's own headers: the contents of a buffer, independent of our structs.
// Compiled by test_real_libcupti.py against the headers of one CUDA version; KERNEL, MEMCPY, ... name its structs.
#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

const char* const kNames[] = {"_Z5sgemmPfi", "relu", "_ZN2at6native4copyEv", "relu"};

// Numerical Recipes' generator: the same buffer for the same seed on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint32_t>(state_ >> 33);
  }
  uint32_t below(uint32_t end) { return next() % end; }

 private:
  uint64_t state_;
};

class Row {
 public:
  explicit Row(const char* table) : text_(std::string("{\"table\": \"") + table + "\"") {}
  template <typename T>
  Row& set(const char* column, T value) {
    text_ += std::string(", \"") + column + "\": " + std::to_string(value);
    return *this;
  }
  Row& set(const char* column, const char* value) {
    text_ += std::string(", \"") + column + "\": \"" + value + "\"";
    return *this;
  }
  // Times above 2^63 do not occur; our columns are signed.
  Row& times(uint64_t start, uint64_t end) {
    return set("start_ns", static_cast<int64_t>(start)).set("end_ns", static_cast<int64_t>(end));
  }
  void write(char* out, size_t capacity) const { std::snprintf(out, capacity, "%s}", text_.c_str()); }

 private:
  std::string text_;
};

// Fields that only newer versions have; 0 before.
template <typename T>
auto return_value(const T& record, int) -> decltype(uint32_t{record.returnValue}) {
  return record.returnValue;
}
template <typename T>
uint32_t return_value(const T&, ...) {
  return 0;
}
template <typename T>
auto correlation(const T& record, int) -> decltype(uint32_t{record.correlationId}) {
  return record.correlationId;
}
template <typename T>
uint32_t correlation(const T&, ...) {
  return 0;
}
template <typename T>
auto clear_overhead_data(T& record, int) -> decltype(void(record.overheadData)) {
  record.overheadData = nullptr;  // a reader of the record would free this pointer
}
template <typename T>
void clear_overhead_data(T&, ...) {}

template <typename T>
T* append(uint8_t* buffer, size_t* used, Random* random, CUpti_ActivityKind kind) {
  uint8_t* bytes = buffer + *used;
  for (size_t at = 0; at < sizeof(T); ++at) bytes[at] = static_cast<uint8_t>(random->next());
  *used += sizeof(T);
  T* record = reinterpret_cast<T*>(bytes);
  record->kind = kind;
  return record;
}

// Only variables have names; for other memory the field is undefined.
bool is_variable(const MEMORY2& record) {
  return record.memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC ||
         record.memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC;
}

void copy_columns(Row* row, uint64_t bytes, uint8_t copy_kind, uint8_t src_kind, uint8_t dst_kind, uint8_t flags) {
  row->set("num_bytes", bytes)
      .set("copy_kind", copy_kind)
      .set("src_kind", src_kind)
      .set("dst_kind", dst_kind)
      .set("is_async", (flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0 ? 1 : 0);
}

template <typename T>
void place_columns(Row* row, const T& record) {
  row->times(record.start, record.end)
      .set("device_id", record.deviceId)
      .set("context_id", record.contextId)
      .set("stream_id", record.streamId)
      .set("correlation_id", record.correlationId)
      .set("graph_id", record.graphId)
      .set("graph_node_id", record.graphNodeId);
}

}  // namespace

// Fills a buffer with `count` records of random kinds; with `foreign`, also of a kind that we do not read. Returns the
// bytes used.
extern "C" size_t fill_records(uint8_t* buffer, uint64_t seed, size_t count, int foreign) {
  Random random(seed);
  size_t used = 0;
  for (size_t index = 0; index < count; ++index) {
    switch (random.below(foreign != 0 ? 11 : 10)) {
      case 0: {
        auto* record = append<KERNEL>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        record->name = kNames[random.below(4)];
        record->clusterX = 1 + random.below(16);
        record->clusterY = 1 + random.below(16);
        record->clusterZ = 1 + random.below(16);
        break;
      }
      case 1:
        append<MEMCPY>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_MEMCPY);
        break;
      case 2:
        append<MEMCPY2>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_MEMCPY2);
        break;
      case 3:
        append<MEMSET>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_MEMSET)->memoryKind =
            static_cast<uint16_t>(random.below(8));
        break;
      case 4:
        append<RUNTIME>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_RUNTIME);
        break;
      case 5:
        append<DRIVER>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_DRIVER);
        break;
      case 6:
        append<EXTERNAL_CORRELATION>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)->externalKind =
            static_cast<CUpti_ExternalCorrelationKind>(1 + random.below(5));
        break;
      case 7:
        append<SYNCHRONIZATION>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)->type =
            static_cast<CUpti_ActivitySynchronizationType>(random.below(5));
        break;
      case 8: {
        auto* record = append<OVERHEAD>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_OVERHEAD);
        record->objectKind = static_cast<CUpti_ActivityObjectKind>(random.below(6));
        clear_overhead_data(*record, 0);
        break;
      }
      case 9: {
        auto* record = append<MEMORY2>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_MEMORY2);
        record->memoryOperationType = static_cast<CUpti_ActivityMemoryOperationType>(1 + random.below(2));
        record->memoryKind = static_cast<CUpti_ActivityMemoryKind>(random.below(8));
        record->memoryPoolConfig.memoryPoolType = static_cast<CUpti_ActivityMemoryPoolType>(random.below(3));
        record->isAsync = random.below(2);
        if (is_variable(*record)) record->name = kNames[random.below(4)];
        break;
      }
      default:
        append<CUpti_ActivityMarker2>(buffer, &used, &random, CUPTI_ACTIVITY_KIND_MARKER);
    }
  }
  return used;
}

// The contents of a record as a JSON object of our column names; {"table": ""} for a kind that we do not read.
extern "C" void describe_record(const uint8_t* bytes, char* out, size_t capacity) {
  const auto kind = reinterpret_cast<const CUpti_Activity*>(bytes)->kind;
  Row row("");
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& record = *reinterpret_cast<const KERNEL*>(bytes);
      row = Row("kernels");
      place_columns(&row, record);
      row.set("name", record.name)
          .set("grid_x", record.gridX)
          .set("grid_y", record.gridY)
          .set("grid_z", record.gridZ)
          .set("block_x", record.blockX)
          .set("block_y", record.blockY)
          .set("block_z", record.blockZ)
          .set("cluster_x", record.clusterX)
          .set("cluster_y", record.clusterY)
          .set("cluster_z", record.clusterZ)
          .set("registers_per_thread", record.registersPerThread)
          .set("static_shared_bytes", record.staticSharedMemory)
          .set("dynamic_shared_bytes", record.dynamicSharedMemory)
          .set("local_bytes_per_thread", record.localMemoryPerThread)
          .set("launch_type", record.launchType);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& record = *reinterpret_cast<const MEMCPY*>(bytes);
      row = Row("memcpys");
      place_columns(&row, record);
      copy_columns(&row, record.bytes, record.copyKind, record.srcKind, record.dstKind, record.flags);
      row.set("src_device_id", record.deviceId)
          .set("dst_device_id", record.deviceId)
          .set("src_context_id", record.contextId)
          .set("dst_context_id", record.contextId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& record = *reinterpret_cast<const MEMCPY2*>(bytes);
      row = Row("memcpys");
      place_columns(&row, record);
      copy_columns(&row, record.bytes, record.copyKind, record.srcKind, record.dstKind, record.flags);
      row.set("src_device_id", record.srcDeviceId)
          .set("dst_device_id", record.dstDeviceId)
          .set("src_context_id", record.srcContextId)
          .set("dst_context_id", record.dstContextId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& record = *reinterpret_cast<const MEMSET*>(bytes);
      row = Row("memsets");
      place_columns(&row, record);
      row.set("num_bytes", record.bytes)
          .set("value", record.value)
          .set("memory_kind", record.memoryKind)
          .set("is_async", (record.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0 ? 1 : 0);
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& record = *reinterpret_cast<const RUNTIME*>(bytes);
      row = Row("api_calls");
      row.times(record.start, record.end)
          .set("domain", static_cast<int>(kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API
                                                                              : CUPTI_CB_DOMAIN_DRIVER_API))
          .set("callback_id", record.cbid)
          .set("process_id", record.processId)
          .set("thread_id", record.threadId)
          .set("correlation_id", record.correlationId)
          .set("return_value", record.returnValue);
      break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& record = *reinterpret_cast<const EXTERNAL_CORRELATION*>(bytes);
      row = Row("external_correlations");
      row.set("correlation_id", record.correlationId)
          .set("external_id", record.externalId)
          .set("external_kind", static_cast<int>(record.externalKind));
      break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& record = *reinterpret_cast<const SYNCHRONIZATION*>(bytes);
      row = Row("synchronizations");
      row.times(record.start, record.end)
          .set("sync_type", static_cast<int>(record.type))
          .set("context_id", record.contextId)
          .set("stream_id", record.streamId)
          .set("correlation_id", record.correlationId)
          .set("event_id", record.cudaEventId)
          .set("return_value", return_value(record, 0));
      break;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto& record = *reinterpret_cast<const OVERHEAD*>(bytes);
      const bool host =
          record.objectKind == CUPTI_ACTIVITY_OBJECT_PROCESS || record.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
      const bool device = !host && record.objectKind != CUPTI_ACTIVITY_OBJECT_UNKNOWN;
      row = Row("overheads");
      row.times(record.start, record.end)
          .set("overhead_kind", static_cast<uint32_t>(record.overheadKind))
          .set("object_kind", static_cast<int>(record.objectKind))
          .set("process_id", host ? record.objectId.pt.processId : 0)
          .set("thread_id", host ? record.objectId.pt.threadId : 0)
          .set("device_id", device ? record.objectId.dcs.deviceId : 0)
          .set("context_id", device ? record.objectId.dcs.contextId : 0)
          .set("stream_id", device ? record.objectId.dcs.streamId : 0)
          .set("correlation_id", correlation(record, 0));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
      const auto& record = *reinterpret_cast<const MEMORY2*>(bytes);
      const auto& pool = record.memoryPoolConfig;
      const bool local = pool.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
      const bool pooled = local || pool.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED;
      row = Row("memory_operations");
      row.set("start_ns", static_cast<int64_t>(record.timestamp))
          .set("operation", static_cast<int>(record.memoryOperationType))
          .set("memory_kind", static_cast<int>(record.memoryKind))
          .set("address", record.address)
          .set("num_bytes", record.bytes)
          .set("device_id", record.deviceId)
          .set("context_id", record.contextId)
          .set("stream_id", record.streamId)
          .set("correlation_id", record.correlationId)
          .set("name", is_variable(record) ? record.name : "")
          .set("is_async", record.isAsync)
          .set("pool_type", static_cast<int>(pool.memoryPoolType))
          .set("pool_address", pooled ? pool.address : 0)
          .set("pool_bytes", local ? pool.pool.size : 0)
          .set("pool_used_bytes", local ? pool.utilizedSize : 0);
      break;
    }
    default:
      break;
  }
  row.write(out, capacity);
}
