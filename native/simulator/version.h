// The differences between the CUDA versions that can be simulated: numbers, functions, strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cupti/abi.h"

namespace collector::simulator {

// CUDA versions are major * 1000 + minor * 10, as in the driver.
struct Release {
  int cuda;
  uint32_t api_version;  // the result of cuptiGetVersion
};

// Patch releases of one minor version are adjacent; the last is used if only the minor version is given.
inline constexpr Release kReleases[] = {
    {12000, 18},     {12010, 18},     {12020, 20},     {12030, 21},     {12040, 22},     {12050, 23},
    {12060, 24},     {12080, 26},     {12090, 27},     {12090, 28},     {13000, 130000}, {13000, 130001},
    {13010, 130100}, {13010, 130101}, {13020, 130200}, {13020, 130201}, {13020, 130202}, {13030, 130300},
    {13030, 130301}, {13040, 130400}, {13040, 130401}, {13050, 130500},
};

// The release of a CUDA version; api_version 0 means its newest patch. `cuda` of the result is 0 if there is none.
constexpr Release release_of(int cuda, uint32_t api_version) {
  Release found{0, 0};
  for (const Release& release : kReleases) {
    if (release.cuda == cuda && (api_version == 0 || release.api_version == api_version)) found = release;
  }
  return found;
}

struct Function {
  std::string_view name;
  int since_cuda;  // 0: a function of the driver
};

// Every exported function and its first version. A simulated older version behaves as if newer functions did not exist.
inline constexpr Function kFunctions[] = {
    {"cuptiGetVersion", 12000},
    {"cuptiGetResultString", 12000},
    {"cuptiGetErrorMessage", 12020},
    {"cuptiGetTimestamp", 12000},
    {"cuptiGetLastError", 12000},
    {"cuptiSubscribe", 12000},
    {"cuptiSubscribe_v2", 13000},
    {"cuptiUnsubscribe", 12000},
    {"cuptiEnableCallback", 12000},
    {"cuptiEnableDomain", 12000},
    {"cuptiEnableAllDomains", 12000},
    {"cuptiGetCallbackName", 12000},
    {"cuptiComputeCapabilitySupported", 12000},
    {"cuptiActivityEnable", 12000},
    {"cuptiActivityEnableAndDump", 12000},
    {"cuptiActivityDisable", 12000},
    {"cuptiActivityRegisterCallbacks", 12000},
    {"cuptiActivityRegisterTimestampCallback", 12000},
    {"cuptiActivityGetNextRecord", 12000},
    {"cuptiActivityGetNumDroppedRecords", 12000},
    {"cuptiActivityGetStructSize", 13020},
    {"cuptiActivityFlushAll", 12000},
    {"cuptiActivityFlushPeriod", 12000},
    {"cuptiActivityGetAttribute", 12000},
    {"cuptiActivitySetAttribute", 12000},
    {"cuptiActivityPushExternalCorrelationId", 12000},
    {"cuptiActivityPopExternalCorrelationId", 12000},
    {"cuptiActivityEnableRuntimeApi", 12050},
    {"cuptiActivityEnableDriverApi", 12050},
    {"cuptiActivityEnableAllSyncRecords", 12080},
    {"cuptiActivityEnable_v2", 13020},
    {"cuptiGetTimestamp_v2", 13030},
    {"cuptiActivityRegisterCallbacks_v2", 13020},
    {"cuptiActivityEnableAndDump_v2", 13020},
    {"cuptiActivityDisable_v2", 13020},
    {"cuptiActivityGetNextRecord_v2", 13030},
    {"cuptiActivityGetNumDroppedRecords_v2", 13030},
    {"cuptiActivityGetAttribute_v2", 13020},
    {"cuptiActivitySetAttribute_v2", 13020},
    {"cuptiActivityPushExternalCorrelationId_v2", 13030},
    {"cuptiActivityPopExternalCorrelationId_v2", 13030},
    {"cuptiActivityEnableRuntimeApi_v2", 13030},
    {"cuptiActivityEnableDriverApi_v2", 13030},
    {"cuptiGetContextId", 12000},
    {"cuptiGetStreamIdEx", 12000},
    {"cuptiGetGraphId", 12000},
    {"cuptiGetGraphNodeId", 12000},
    {"cuptiGetGraphExecId", 12030},
    {"cuptiIsTracingSessionRunning", 13030},
    {"cuptiActivityEnableLatencyTimestamps", 12000},
    {"cuptiActivityEnableLaunchAttributes", 12000},
    {"cuptiSetThreadIdType", 12000},
    {"cuptiGetThreadIdType", 12000},
    {"cuptiFinalize", 12000},
    {"cuInit", 0},
    {"cuDriverGetVersion", 0},
    {"cuDeviceGetCount", 0},
    {"cuDeviceGet", 0},
    {"cuDeviceGetName", 0},
    {"cuDeviceGetAttribute", 0},
    {"cuDeviceGetUuid", 0},
    {"cuDeviceTotalMem_v2", 0},
    {"cuDevicePrimaryCtxGetState", 0},
    {"cuDevicePrimaryCtxRetain", 0},
    {"cuDevicePrimaryCtxRelease_v2", 0},
    {"cuCtxGetCurrent", 0},
    {"cuCtxSetCurrent", 0},
    {"cuCtxPushCurrent_v2", 0},
    {"cuCtxPopCurrent_v2", 0},
    {"cuCtxGetDevice", 0},
    {"cuCtxGetId", 0},
    {"cuStreamGetCtx", 0},
    {"cuStreamGetId", 0},
    {"cuCtxSynchronize", 0},
    {"cuModuleLoadData", 0},
    {"cuModuleGetFunction", 0},
    {"cuLaunchKernel", 0},
    {"cuMemAlloc_v2", 0},
    {"cuMemFree_v2", 0},
    {"cuMemGetInfo_v2", 0},
    {"cuProfilerStart", 0},
    {"cuProfilerStop", 0},
    {"cuGetErrorString", 0},
    {"cuGetErrorName", 0},
};
inline constexpr size_t kFunctionCount = sizeof(kFunctions) / sizeof(kFunctions[0]);

// The index in kFunctions, or kFunctionCount if there is none.
constexpr size_t function_index(std::string_view name) {
  for (size_t i = 0; i < kFunctionCount; ++i) {
    if (kFunctions[i].name == name) return i;
  }
  return kFunctionCount;
}

// Bytes of one record of a kind in a CUDA version; 0 if the simulator does not know the kind.
constexpr uint32_t stride_of(uint32_t kind, int cuda) {
  if (kind == static_cast<uint32_t>(cupti::ActivityKind::kKernel)) {
    kind = static_cast<uint32_t>(cupti::ActivityKind::kConcurrentKernel);
  }
  uint32_t bytes = 0;
  for (const cupti::Layout& layout : cupti::kLayouts) {
    if (static_cast<uint32_t>(layout.kind) == kind && layout.since_cuda <= cuda) bytes = layout.bytes;
  }
  return bytes;
}

// The last kind that CUDA 12.0 - 13.5 define; the legacy kinds do not exist from 13.0 on.
inline constexpr uint32_t kLastKind = 59;
// A kind that none of these versions defines but this libcupti steps over, as a newer one would.
inline constexpr uint32_t kFutureKind = 77;
inline constexpr uint32_t kFutureKindBytes = 64;

}  // namespace collector::simulator
