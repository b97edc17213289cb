// The Activity API's binary interface, CUDA 12.0 to 13.5, as this project needs it.
//
// Each struct holds a record as the newest CUPTI lays it out. Every older layout is a prefix of it: newer
// versions only append fields, or give meaning to former padding. So one struct reads all versions, provided that
//  * records are stepped by the loaded library's stride (Library::stride), never by sizeof;
//  * a field marked "since" is read only where the loaded library is at least that new: in an older one its
//    bytes belong to the next record.
// Field names are CUPTI's own, so that a test can hold each offset against NVIDIA's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::cupti {

// What a CUPTI call returns; the numbers never changed, new ones were appended.
enum class Result : uint32_t {
  kSuccess = 0,
  kInvalidParameter = 1,
  kInvalidDevice = 2,
  kOutOfMemory = 8,
  kMaxLimitReached = 12,
  kNotReady = 13,
  kNotCompatible = 14,
  kNotInitialized = 15,
  kQueueEmpty = 18,
  kInvalidKind = 21,
  kDisabled = 23,
  kNotSupported = 27,
  kVirtualizedDeviceNotSupported = 33,
  kInsufficientPrivileges = 35,
  kMultipleSubscribersNotSupported = 39,
  kVirtualizedDeviceInsufficientPrivileges = 40,
  kConfidentialComputingNotSupported = 41,
  kCmpDeviceNotSupported = 42,
  kUnknown = 999,
  kMigDeviceNotSupported = 43,
  kSliDeviceNotSupported = 44,
  kWslDeviceNotSupported = 45,
};

// KERNEL serialises the program's kernels; CONCURRENT_KERNEL does not and is the one we enable.
enum class ActivityKind : uint32_t {
  kInvalid = 0,
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpy2 = 22,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory2 = 49,
};

enum class Attribute : uint32_t {
  kDeviceBufferPoolLimit = 2,
  kZeroedOutActivityBuffer = 5,
  kDeviceBufferPreAllocateValue = 6,
  kMemAllocationTypeHostPinned = 8,
  kPerThreadActivityBuffer = 9,
};

enum class MemcpyKind : uint8_t {
  kUnknown = 0,
  kHtoD = 1,
  kDtoH = 2,
  kHtoA = 3,
  kAtoH = 4,
  kAtoA = 5,
  kAtoD = 6,
  kDtoA = 7,
  kDtoD = 8,
  kHtoH = 9,
  kPtoP = 10,
};

enum class MemoryKind : uint8_t {
  kUnknown = 0,
  kPageable = 1,
  kPinned = 2,
  kDevice = 3,
  kArray = 4,
  kManaged = 5,
  kDeviceStatic = 6,
  kManagedStatic = 7,
};

enum class MemoryOperationType : uint32_t {
  kInvalid = 0,
  kAllocation = 1,
  kRelease = 2,
};

enum class MemoryPoolType : uint32_t {
  kInvalid = 0,
  kLocal = 1,
  kImported = 2,
};

enum class SynchronizationType : uint32_t {
  kUnknown = 0,
  kEventSynchronize = 1,
  kStreamWaitEvent = 2,
  kStreamSynchronize = 3,
  kContextSynchronize = 4,
};

enum class ObjectKind : uint32_t {
  kUnknown = 0,
  kProcess = 1,
  kThread = 2,
  kDevice = 3,
  kContext = 4,
  kStream = 5,
};

// Kineto takes CUSTOM0 and CUSTOM1; ours is CUSTOM2.
enum class ExternalCorrelationKind : uint32_t {
  kCustom0 = 3,
  kCustom1 = 4,
  kCustom2 = 5,
};

enum class CallbackDomain : uint32_t {
  kDriverApi = 1,
  kRuntimeApi = 2,
};

// copies within one device or between host and device: 88 from 12.0, 96 from 12.8, 96 from 13.0, 112 from 13.4.
struct Memcpy {
  uint32_t kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint32_t runtimeCorrelationId;
  uint8_t reserved0[12];
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID;
  uint32_t channelType;
  uint8_t isDeviceLaunched;  // since 13.0
  uint8_t reserved1[3];
  uint64_t copyCount;      // since 12.8
  uint32_t sourceGraphId;  // since 13.4
  uint8_t reserved2[4];
  uint64_t sourceGraphNodeId;  // since 13.4
};
static_assert(sizeof(Memcpy) == 112);

// MEMCPY2 (22): copies between devices: 96 from 12.0.
struct MemcpyPtoP {
  uint32_t kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t srcDeviceId;
  uint32_t srcContextId;
  uint32_t dstDeviceId;
  uint32_t dstContextId;
  uint32_t correlationId;
  uint8_t reserved0[8];
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID;
  uint32_t channelType;
  uint8_t reserved1[4];
};
static_assert(sizeof(MemcpyPtoP) == 96);

// memory fills: 88 from 12.0, 88 from 13.0, 104 from 13.4.
struct Memset {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint16_t flags;
  uint16_t memoryKind;
  uint8_t reserved0[12];
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID;
  uint32_t channelType;
  uint8_t isDeviceLaunched;  // since 13.0
  uint8_t reserved1[3];
  uint32_t sourceGraphId;  // since 13.4
  uint8_t reserved2[4];
  uint64_t sourceGraphNodeId;  // since 13.4
};
static_assert(sizeof(Memset) == 104);

// KERNEL (3) and CONCURRENT_KERNEL (10): 208 from 12.0, 216 from 13.0, 224 from 13.1, 232 from 13.3, 248 from 13.4.
struct Kernel {
  uint32_t kind;
  uint8_t cacheConfig;
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested;
  uint32_t partitionedGlobalCacheExecuted;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  int32_t gridX;
  int32_t gridY;
  int32_t gridZ;
  int32_t blockX;
  int32_t blockY;
  int32_t blockZ;
  int32_t staticSharedMemory;
  int32_t dynamicSharedMemory;
  uint32_t localMemoryPerThread;
  uint32_t localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
  uint8_t reserved0[8];
  uint64_t queued;
  uint64_t submitted;
  uint8_t launchType;
  uint8_t isSharedMemoryCarveoutRequested;
  uint8_t sharedMemoryCarveoutRequested;
  uint8_t reserved1[1];
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig;
  uint32_t graphId;
  void* pAccessPolicyWindow;
  uint32_t channelID;
  uint32_t channelType;
  uint32_t clusterX;
  uint32_t clusterY;
  uint32_t clusterZ;
  uint32_t clusterSchedulingPolicy;
  uint64_t localMemoryTotal_v2;
  uint32_t maxPotentialClusterSize;
  uint32_t maxActiveClusters;
  uint8_t isDeviceLaunched;  // since 13.0
  uint8_t reserved2[7];
  int32_t priority;  // since 13.1
  uint8_t reserved3[4];
  uint32_t executionModel;  // since 13.3
  uint8_t reserved4[4];
  uint32_t sourceGraphId;  // since 13.4
  uint8_t reserved5[4];
  uint64_t sourceGraphNodeId;  // since 13.4
};
static_assert(sizeof(Kernel) == 248);

// DRIVER (4), RUNTIME (5) and INTERNAL_LAUNCH_API (48): 40 from 12.0.
struct Api {
  uint32_t kind;
  uint32_t cbid;
  uint64_t start;
  uint64_t end;
  uint32_t processId;
  uint32_t threadId;
  uint32_t correlationId;
  uint32_t returnValue;
};
static_assert(sizeof(Api) == 40);

// what CUPTI and the driver cost: 40 from 12.0, 48 from 12.3, 56 from 12.4.
struct Overhead {
  uint32_t kind;
  uint32_t overheadKind;
  uint32_t objectKind;
  uint32_t objectDeviceOrProcess;
  uint32_t objectContextOrThread;
  uint32_t objectStream;
  uint64_t start;
  uint64_t end;
  uint32_t correlationId;  // since 12.3
  uint8_t reserved0[4];
  void* overheadData;  // since 12.4
};
static_assert(sizeof(Overhead) == 56);

// waits of the host and of streams: 40 from 12.0, 56 from 12.8.
struct Synchronization {
  uint32_t kind;
  uint32_t type;
  uint64_t start;
  uint64_t end;
  uint32_t correlationId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t cudaEventId;
  uint64_t cudaEventSyncId;  // since 12.8
  uint32_t returnValue;      // since 12.8
  uint8_t reserved0[4];
};
static_assert(sizeof(Synchronization) == 56);

// the id we pushed, and the API call made under it: 24 from 12.0.
struct ExternalCorrelation {
  uint32_t kind;
  uint32_t externalKind;
  uint64_t externalId;
  uint32_t correlationId;
  uint8_t reserved0[4];
};
static_assert(sizeof(ExternalCorrelation) == 24);

// MEMORY2 (49): memory allocated or released: 120 from 12.0, 128 from 12.6. The pool's fields are a struct of CUPTI's.
struct Memory {
  uint32_t kind;
  uint32_t memoryOperationType;
  uint32_t memoryKind;
  uint32_t correlationId;
  uint64_t address;
  uint64_t bytes;
  uint64_t timestamp;
  uint64_t PC;
  uint32_t processId;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  const char* name;
  uint32_t isAsync;
  uint8_t reserved0[4];
  uint32_t poolType;
  uint8_t reserved1[4];
  uint64_t poolAddress;
  uint64_t poolReleaseThreshold;
  uint64_t poolSizeOrProcess;
  uint64_t poolUtilizedSize;
  const char* source;  // since 12.6
};
static_assert(sizeof(Memory) == 128);

// One row: from this CUDA version on (major * 1000 + minor * 10), records of this kind are `bytes` long.
struct Layout {
  ActivityKind kind;
  int since_cuda;
  uint32_t bytes;
};
inline constexpr Layout kLayouts[] = {
    {ActivityKind::kMemcpy, 12000, 88},
    {ActivityKind::kMemcpy, 12080, 96},
    {ActivityKind::kMemcpy, 13040, 112},
    {ActivityKind::kMemcpy2, 12000, 96},
    {ActivityKind::kMemset, 12000, 88},
    {ActivityKind::kMemset, 13040, 104},
    {ActivityKind::kConcurrentKernel, 12000, 208},
    {ActivityKind::kConcurrentKernel, 13000, 216},
    {ActivityKind::kConcurrentKernel, 13010, 224},
    {ActivityKind::kConcurrentKernel, 13030, 232},
    {ActivityKind::kConcurrentKernel, 13040, 248},
    {ActivityKind::kDriver, 12000, 40},
    {ActivityKind::kRuntime, 12000, 40},
    {ActivityKind::kOverhead, 12000, 40},
    {ActivityKind::kOverhead, 12030, 48},
    {ActivityKind::kOverhead, 12040, 56},
    {ActivityKind::kSynchronization, 12000, 40},
    {ActivityKind::kSynchronization, 12080, 56},
    {ActivityKind::kExternalCorrelation, 12000, 24},
    {ActivityKind::kMemory2, 12000, 120},
    {ActivityKind::kMemory2, 12060, 128},
};

// Fields whose bytes mean something only from a CUDA version on.
struct OptionalField {
  ActivityKind kind;
  int since_cuda;
  uint32_t offset;
  uint32_t bytes;
};
inline constexpr OptionalField kOptionalFields[] = {
    {ActivityKind::kMemcpy, 13000, offsetof(Memcpy, isDeviceLaunched), 1},
    {ActivityKind::kMemcpy, 12080, offsetof(Memcpy, copyCount), 8},
    {ActivityKind::kMemcpy, 13040, offsetof(Memcpy, sourceGraphId), 4},
    {ActivityKind::kMemcpy, 13040, offsetof(Memcpy, sourceGraphNodeId), 8},
    {ActivityKind::kMemset, 13000, offsetof(Memset, isDeviceLaunched), 1},
    {ActivityKind::kMemset, 13040, offsetof(Memset, sourceGraphId), 4},
    {ActivityKind::kMemset, 13040, offsetof(Memset, sourceGraphNodeId), 8},
    {ActivityKind::kConcurrentKernel, 13000, offsetof(Kernel, isDeviceLaunched), 1},
    {ActivityKind::kConcurrentKernel, 13010, offsetof(Kernel, priority), 4},
    {ActivityKind::kConcurrentKernel, 13030, offsetof(Kernel, executionModel), 4},
    {ActivityKind::kConcurrentKernel, 13040, offsetof(Kernel, sourceGraphId), 4},
    {ActivityKind::kConcurrentKernel, 13040, offsetof(Kernel, sourceGraphNodeId), 8},
    {ActivityKind::kOverhead, 12030, offsetof(Overhead, correlationId), 4},
    {ActivityKind::kOverhead, 12040, offsetof(Overhead, overheadData), 8},
    {ActivityKind::kSynchronization, 12080, offsetof(Synchronization, cudaEventSyncId), 8},
    {ActivityKind::kSynchronization, 12080, offsetof(Synchronization, returnValue), 4},
    {ActivityKind::kMemory2, 12060, offsetof(Memory, source), 8},
};

}  // namespace collector::cupti
