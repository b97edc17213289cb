// The part of the Activity API's binary interface, CUDA 12.0 to 13.5, that this project needs.
//
// kinds/generated/kinds.h holds each record in the layout of the newest CUPTI. Every older layout is a prefix of it:
// newer versions only append fields or give a meaning to former padding. One struct therefore reads all versions, under
// two conditions:
// * records are stepped by the loaded library's stride (Library::stride), never by sizeof;
// * a field marked "since" is read only if the loaded library is at least that new: in an older library its
//   bytes belong to the next record.
// Field names are CUPTI's own, so that a test can compare each offset with NVIDIA's headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kinds/generated/kinds.h"

namespace collector::cupti {

// The results of CUPTI calls. The numbers never changed; newer versions only appended results.
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

enum class Attribute : uint32_t {
  kDeviceBufferPoolLimit = 2,
  kZeroedOutActivityBuffer = 5,
  kDeviceBufferPreAllocateValue = 6,
  kMemAllocationTypeHostPinned = 8,
  kPerThreadActivityBuffer = 9,
  // Of one of several subscribers, since 13.3.
  kEnableAllSyncRecords = 16,
  kEnableMultiSubscriberGraphTrace = 20,
  kThreadIdType = 21,
};

// Callbacks about the start and stop of profiling that a program asks for, by their numbers in cupti_driver_cbid.h and
// cupti_runtime_cbid.h, which never change.
constexpr uint32_t kProfilerStartCall = 308;
constexpr uint32_t kProfilerStopCall = 309;
constexpr uint32_t kRuntimeProfilerStartCall = 171;
constexpr uint32_t kRuntimeProfilerStopCall = 172;

// ApiCallData::callbackSite.
constexpr uint32_t kCallEntered = 0;
constexpr uint32_t kCallReturned = 1;

// Above the number of every function of the driver and the runtime in CUDA 12.0 - 13.5.
constexpr uint32_t kCallbackIds = 1024;
// The place of the functions' domain in an array of both: first the driver, then the runtime.
constexpr size_t index_of(CallbackDomain domain) { return domain == CallbackDomain::kRuntimeApi ? 1 : 0; }

// The domain of callbacks about objects of the driver, and those about CUDA graphs (CUpti_CallbackIdResource).
constexpr uint32_t kResourceDomain = 3;
enum class ResourceCallback : uint32_t {
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kGraphCloned = 11,
  kGraphNodeCreateStarting = 12,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphNodeDependencyCreated = 15,
  kGraphExecCreateStarting = 17,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
  kGraphNodeUpdated = 22,    // since 13.0
  kGraphNodeSetParams = 23,  // likewise
};

// NOLINTBEGIN(readability-identifier-naming): the members bear CUPTI's own names.

// CUpti_CallbackData: the argument of callbacks about API calls. The return value is a CUresult or cudaError_t.
struct ApiCallData {
  uint32_t callbackSite;
  const char* functionName;
  const void* functionParams;
  void* functionReturnValue;
  const char* symbolName;
  void* context;
  uint32_t contextUid;
  uint64_t* correlationData;
  uint32_t correlationId;
};
static_assert(sizeof(ApiCallData) == 72);

// CUpti_ResourceData: the argument of these callbacks.
// The descriptor of graphs is a GraphData.
struct ResourceData {
  void* context;
  void* stream;
  void* resourceDescriptor;
};
static_assert(sizeof(ResourceData) == 24);

// CUpti_GraphData. Which members are set depends on the callback. The type of a node is reliable only in
// kGraphNodeCreateStarting: later ones call an empty node a kernel. It is a CUgraphNodeType.
struct GraphData {
  void* graph;
  void* originalGraph;
  void* node;
  void* originalNode;
  uint32_t nodeType;
  uint32_t reserved;
  void* dependency;
  void* graphExec;
};
static_assert(sizeof(GraphData) == 56);

// NOLINTEND(readability-identifier-naming)

}  // namespace collector::cupti
