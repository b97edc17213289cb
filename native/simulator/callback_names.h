// The API calls of the simulated program, by CUPTI's callback ids, which never change.
#pragma once

#include <cstdint>
#include <string_view>

#include "cupti/abi.h"

namespace collector::simulator {

struct CallbackName {
  cupti::CallbackDomain domain;
  uint32_t id;
  const char* name;
};

inline constexpr CallbackName kCallbackNames[] = {
    {cupti::CallbackDomain::kDriverApi, 9, "cuDeviceGetAttribute"},
    {cupti::CallbackDomain::kDriverApi, 17, "cuCtxSynchronize"},
    {cupti::CallbackDomain::kDriverApi, 19, "cuModuleLoadData"},
    {cupti::CallbackDomain::kDriverApi, 38, "cuMemFreeHost"},
    {cupti::CallbackDomain::kDriverApi, 39, "cuMemHostAlloc"},
    {cupti::CallbackDomain::kDriverApi, 119, "cuEventRecord"},
    {cupti::CallbackDomain::kDriverApi, 120, "cuEventQuery"},
    {cupti::CallbackDomain::kDriverApi, 121, "cuEventSynchronize"},
    {cupti::CallbackDomain::kDriverApi, 125, "cuStreamQuery"},
    {cupti::CallbackDomain::kDriverApi, 126, "cuStreamSynchronize"},
    {cupti::CallbackDomain::kDriverApi, 216, "cuMemsetD8Async"},
    {cupti::CallbackDomain::kDriverApi, 243, "cuMemAlloc_v2"},
    {cupti::CallbackDomain::kDriverApi, 245, "cuMemFree_v2"},
    {cupti::CallbackDomain::kDriverApi, 277, "cuMemcpyHtoDAsync_v2"},
    {cupti::CallbackDomain::kDriverApi, 279, "cuMemcpyDtoHAsync_v2"},
    {cupti::CallbackDomain::kDriverApi, 281, "cuMemcpyDtoDAsync_v2"},
    {cupti::CallbackDomain::kDriverApi, 295, "cuStreamWaitEvent"},
    {cupti::CallbackDomain::kDriverApi, 304, "cuCtxGetCurrent"},
    {cupti::CallbackDomain::kDriverApi, 306, "cuMemcpyAsync"},
    {cupti::CallbackDomain::kDriverApi, 307, "cuLaunchKernel"},
    {cupti::CallbackDomain::kDriverApi, 308, "cuProfilerStart"},
    {cupti::CallbackDomain::kDriverApi, 309, "cuProfilerStop"},
    {cupti::CallbackDomain::kDriverApi, 319, "cuMemcpyPeerAsync"},
    {cupti::CallbackDomain::kDriverApi, 371, "cuMemAllocManaged"},
    {cupti::CallbackDomain::kDriverApi, 392, "cuDevicePrimaryCtxGetState"},
    {cupti::CallbackDomain::kDriverApi, 483, "cuStreamGetCtx"},
    {cupti::CallbackDomain::kDriverApi, 497, "cuStreamEndCapture"},
    {cupti::CallbackDomain::kDriverApi, 514, "cuGraphLaunch"},
    {cupti::CallbackDomain::kDriverApi, 516, "cuGraphExecDestroy"},
    {cupti::CallbackDomain::kDriverApi, 517, "cuGraphDestroy"},
    {cupti::CallbackDomain::kDriverApi, 523, "cuGraphClone"},
    {cupti::CallbackDomain::kDriverApi, 525, "cuGraphAddChildGraphNode"},
    {cupti::CallbackDomain::kDriverApi, 539, "cuStreamBeginCapture_v2"},
    {cupti::CallbackDomain::kDriverApi, 586, "cuGraphExecChildGraphNodeSetParams"},
    {cupti::CallbackDomain::kDriverApi, 598, "cuMemAllocAsync"},
    {cupti::CallbackDomain::kDriverApi, 600, "cuMemFreeAsync"},
    {cupti::CallbackDomain::kDriverApi, 643, "cuGraphInstantiateWithFlags"},
    {cupti::CallbackDomain::kDriverApi, 652, "cuLaunchKernelEx"},
    {cupti::CallbackDomain::kDriverApi, 686, "cuKernelGetAttribute"},
    {cupti::CallbackDomain::kDriverApi, 693, "cuStreamGetId"},
    {cupti::CallbackDomain::kDriverApi, 695, "cuCtxGetId"},
    {cupti::CallbackDomain::kDriverApi, 696, "cuGraphExecUpdate_v2"},
    {cupti::CallbackDomain::kDriverApi, 719, "cuKernelGetName"},
    {cupti::CallbackDomain::kDriverApi, 723, "cuGraphAddNode_v2"},
    {cupti::CallbackDomain::kRuntimeApi, 10, "cudaGetLastError_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 17, "cudaGetDevice_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 20, "cudaMalloc_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 22, "cudaFree_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 26, "cudaFreeHost_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 27, "cudaHostAlloc_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 31, "cudaMemcpy_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 41, "cudaMemcpyAsync_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 49, "cudaMemset_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 51, "cudaMemsetAsync_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 131, "cudaStreamSynchronize_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 132, "cudaStreamQuery_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 135, "cudaEventRecord_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 137, "cudaEventSynchronize_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 138, "cudaEventQuery_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 147, "cudaStreamWaitEvent_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 161, "cudaMemcpyPeerAsync_v4000"},
    {cupti::CallbackDomain::kRuntimeApi, 165, "cudaDeviceSynchronize_v3020"},
    {cupti::CallbackDomain::kRuntimeApi, 171, "cudaProfilerStart_v4000"},
    {cupti::CallbackDomain::kRuntimeApi, 172, "cudaProfilerStop_v4000"},
    {cupti::CallbackDomain::kRuntimeApi, 206, "cudaMallocManaged_v6000"},
    {cupti::CallbackDomain::kRuntimeApi, 211, "cudaLaunchKernel_v7000"},
    {cupti::CallbackDomain::kRuntimeApi, 269, "cudaLaunchCooperativeKernel_v9000"},
    {cupti::CallbackDomain::kRuntimeApi, 301, "cudaGraphClone_v10000"},
    {cupti::CallbackDomain::kRuntimeApi, 311, "cudaGraphLaunch_v10000"},
    {cupti::CallbackDomain::kRuntimeApi, 313, "cudaGraphExecDestroy_v10000"},
    {cupti::CallbackDomain::kRuntimeApi, 314, "cudaGraphDestroy_v10000"},
    {cupti::CallbackDomain::kRuntimeApi, 315, "cudaStreamBeginCapture_v10000"},
    {cupti::CallbackDomain::kRuntimeApi, 319, "cudaStreamEndCapture_v10000"},
    {cupti::CallbackDomain::kRuntimeApi, 335, "cudaGraphExecUpdate_v10020"},
    {cupti::CallbackDomain::kRuntimeApi, 361, "cudaGraphExecChildGraphNodeSetParams_v11010"},
    {cupti::CallbackDomain::kRuntimeApi, 373, "cudaMallocAsync_v11020"},
    {cupti::CallbackDomain::kRuntimeApi, 375, "cudaFreeAsync_v11020"},
    {cupti::CallbackDomain::kRuntimeApi, 430, "cudaLaunchKernelExC_v11060"},
    {cupti::CallbackDomain::kRuntimeApi, 443, "cudaGraphInstantiate_v12000"},
};

// The numbers of functions that libcupti 13.1 names: the names of all that the table does not contain are made up, as
// long as theirs are.
inline constexpr uint32_t kRuntimeFunctions = 845;
inline constexpr uint32_t kDriverFunctions = 549;

// The id of a call by its name in cuptiGetCallbackName; 0 if the table does not contain the name.
constexpr uint32_t callback_id(std::string_view name) {
  for (const CallbackName& row : kCallbackNames) {
    if (name == row.name) return row.id;
  }
  return 0;
}

}  // namespace collector::simulator
