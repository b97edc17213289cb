// libcuda's functions for tracers.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "simulator/device_limits.h"
#include "simulator/exports.h"
#include "simulator/injected_tool.h"

namespace {

using collector::simulator::callback_id;
using collector::simulator::Context;
using collector::simulator::driver_call;
using collector::simulator::Fault;
using collector::simulator::function_index;
using collector::simulator::kClockKhz;
using collector::simulator::kComputeMajor;
using collector::simulator::kComputeMinor;
using collector::simulator::kMultiprocessors;
using collector::simulator::kNullStream;
using collector::simulator::kThreadsPerBlock;
using collector::simulator::kThreadsPerWarp;
using collector::simulator::Simulator;

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int64_t kKernelNs = 5000;

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrorTexts[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

bool is_device(const Simulator& simulator, int device) { return device >= 0 && device < simulator.config.devices; }

// Device attributes that a tracer prints, by CUdevice_attribute.
int device_attribute(int attribute) {
  switch (attribute) {
    case 1:  // threads per block
      return static_cast<int>(kThreadsPerBlock);
    case 10:  // warp size
      return static_cast<int>(kThreadsPerWarp);
    case 13:  // clock rate, kHz
      return static_cast<int>(kClockKhz);
    case 16:  // multiprocessors
      return static_cast<int>(kMultiprocessors);
    case 75:  // compute capability
      return static_cast<int>(kComputeMajor);
    case 76:
      return static_cast<int>(kComputeMinor);
    default:
      return 0;
  }
}

unsigned long long number_difference(Simulator& simulator) {
  int64_t difference = 0;
  simulator.faults.strikes(Fault::kOtherDriverNumbers, &difference);
  return static_cast<unsigned long long>(difference);
}

}  // namespace

SIMULATOR_EXPORT int cuInit(unsigned flags) {
  return driver_call(function_index("cuInit"), [&](Simulator& simulator) {
    if (flags != 0) return kInvalidValue;
    collector::simulator::load_injected_tool();
    return simulator.config.devices > 0 ? kSuccess : kNoDevice;
  });
}

SIMULATOR_EXPORT int cuDriverGetVersion(int* version) {
  return driver_call(function_index("cuDriverGetVersion"), [&](Simulator& simulator) {
    *version = simulator.driver_version;
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDeviceGetCount(int* count) {
  return driver_call(function_index("cuDeviceGetCount"), [&](Simulator& simulator) {
    *count = simulator.config.devices;
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDeviceGet(int* device, int ordinal) {
  return driver_call(function_index("cuDeviceGet"), [&](Simulator& simulator) {
    if (!is_device(simulator, ordinal)) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDeviceGetName(char* name, int bytes, int device) {
  return driver_call(function_index("cuDeviceGetName"), [&](Simulator& simulator) {
    if (!is_device(simulator, device)) return kInvalidDevice;
    std::snprintf(name, static_cast<size_t>(bytes), "%s", simulator.device_name.c_str());
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return driver_call(function_index("cuDeviceGetAttribute"), [&](Simulator& simulator) {
    if (!is_device(simulator, device)) return kInvalidDevice;
    *value = device_attribute(attribute);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDeviceGetUuid(uint8_t* uuid, int device) {
  return driver_call(function_index("cuDeviceGetUuid"), [&](Simulator& simulator) {
    if (!is_device(simulator, device)) return kInvalidDevice;
    std::memset(uuid, 0x51, 16);
    uuid[15] = static_cast<uint8_t>(device);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return driver_call(function_index("cuDeviceTotalMem_v2"), [&](Simulator& simulator) {
    if (!is_device(simulator, device)) return kInvalidDevice;
    *bytes = collector::simulator::kDeviceBytes;
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return driver_call(function_index("cuDevicePrimaryCtxGetState"), [&](Simulator& simulator) {
    if (!is_device(simulator, device)) return kInvalidDevice;
    *flags = 0;
    *active = simulator.used(static_cast<uint32_t>(device)) ? 1 : 0;
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDevicePrimaryCtxRetain(Context** context, int device) {
  return driver_call(function_index("cuDevicePrimaryCtxRetain"), [&](Simulator& simulator) {
    if (!is_device(simulator, device)) return kInvalidDevice;
    *context = simulator.primary_context(static_cast<uint32_t>(device));
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  return driver_call(function_index("cuDevicePrimaryCtxRelease_v2"),
                     [&](Simulator& simulator) { return is_device(simulator, device) ? kSuccess : kInvalidDevice; });
}

SIMULATOR_EXPORT int cuCtxGetCurrent(Context** context) {
  return driver_call(function_index("cuCtxGetCurrent"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    *context = contexts.empty() ? nullptr : contexts.back();
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuCtxSetCurrent(Context* context) {
  return driver_call(function_index("cuCtxSetCurrent"), [&](Simulator& simulator) {
    auto& contexts = simulator.thread().contexts;
    if (!contexts.empty()) contexts.pop_back();
    if (context != nullptr) contexts.push_back(context);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuCtxPushCurrent_v2(Context* context) {
  return driver_call(function_index("cuCtxPushCurrent_v2"), [&](Simulator& simulator) {
    if (context == nullptr) return kInvalidContext;
    simulator.thread().contexts.push_back(context);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuCtxPopCurrent_v2(Context** context) {
  return driver_call(function_index("cuCtxPopCurrent_v2"), [&](Simulator& simulator) {
    auto& contexts = simulator.thread().contexts;
    if (contexts.empty()) return kInvalidContext;
    if (context != nullptr) *context = contexts.back();
    contexts.pop_back();
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuCtxGetDevice(int* device) {
  return driver_call(function_index("cuCtxGetDevice"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    if (contexts.empty()) return kInvalidContext;
    *device = static_cast<int>(contexts.back()->device);
    return kSuccess;
  });
}

// The driver's numbers are CUPTI's, unless a fault makes them differ.
SIMULATOR_EXPORT int cuCtxGetId(Context* context, unsigned long long* id) {
  return driver_call(function_index("cuCtxGetId"), [&](Simulator& simulator) {
    if (context == nullptr) return kInvalidContext;
    *id = context->id + number_difference(simulator);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuStreamGetCtx(void*, Context** context) {
  return driver_call(function_index("cuStreamGetCtx"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    *context = contexts.empty() ? simulator.primary_context(0) : contexts.back();
    return *context != nullptr ? kSuccess : kInvalidContext;
  });
}

SIMULATOR_EXPORT int cuStreamGetId(void* stream, unsigned long long* id) {
  return driver_call(function_index("cuStreamGetId"), [&](Simulator& simulator) {
    *id = (stream == nullptr ? kNullStream : reinterpret_cast<uintptr_t>(stream)) + number_difference(simulator);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuCtxSynchronize() {
  return driver_call(function_index("cuCtxSynchronize"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    if (contexts.empty()) return kInvalidContext;
    simulator.synchronize(contexts.back()->device, -1, kSimDriverCall);
    return static_cast<int>(simulator.context_error.load());
  });
}

// All modules are one, and have every function: a function's handle is the address of its name.
SIMULATOR_EXPORT int cuModuleLoadData(void** module, const void*) {
  static int every_module = 0;
  return driver_call(function_index("cuModuleLoadData"), [&](Simulator&) {
    *module = &every_module;
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuModuleGetFunction(const char** function, void*, const char* name) {
  return driver_call(function_index("cuModuleGetFunction"), [&](Simulator& simulator) {
    *function = simulator.names.address(name);
    return kSuccess;
  });
}

// A stream's handle is its number, null the default stream's. Every kernel takes kKernelNs.
SIMULATOR_EXPORT int cuLaunchKernel(const char* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                    void* stream, void**, void**) {
  return driver_call(function_index("cuLaunchKernel"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    if (contexts.empty()) return kInvalidContext;
    SimActivity kernel{};
    kernel.name = function;
    kernel.type = kSimKernel;
    kernel.launch = kSimDriverCall;
    kernel.device_id = contexts.back()->device;
    kernel.stream_id = stream == nullptr ? kNullStream : static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream));
    kernel.grid_x = static_cast<int32_t>(grid_x);
    kernel.grid_y = static_cast<int32_t>(grid_y);
    kernel.grid_z = static_cast<int32_t>(grid_z);
    kernel.block_x = static_cast<int32_t>(block_x);
    kernel.block_y = static_cast<int32_t>(block_y);
    kernel.block_z = static_cast<int32_t>(block_z);
    kernel.dynamic_shared_bytes = static_cast<int32_t>(shared_bytes);
    const uint32_t error = simulator.context_error.load();  // the program learns of a failing kernel by a later call
    if (simulator.execute(kernel, kKernelNs, 1) == 0) return kInvalidContext;
    return static_cast<int>(error);
  });
}

SIMULATOR_EXPORT int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  return driver_call(function_index("cuMemAlloc_v2"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    if (contexts.empty()) return kInvalidContext;
    if (bytes == 0) return kInvalidValue;
    *address =
        simulator.allocate(contexts.back()->device, bytes, collector::cupti::MemoryKind::kDevice, -1, kSimDriverCall);
    return *address != 0 ? kSuccess : kOutOfMemory;
  });
}

SIMULATOR_EXPORT int cuMemFree_v2(uint64_t address) {
  return driver_call(function_index("cuMemFree_v2"), [&](Simulator& simulator) {
    return simulator.free(address, -1, kSimDriverCall) ? kSuccess : kInvalidValue;
  });
}

SIMULATOR_EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return driver_call(function_index("cuMemGetInfo_v2"), [&](Simulator& simulator) {
    const auto& contexts = simulator.thread().contexts;
    if (contexts.empty()) return kInvalidContext;
    *total = collector::simulator::kDeviceBytes;
    *free = *total - simulator.memory.used(contexts.back()->device);
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuProfilerStart() {
  return driver_call(function_index("cuProfilerStart"), [&](Simulator& simulator) {
    simulator.plain_call(0, callback_id("cuProfilerStart"));
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuProfilerStop() {
  return driver_call(function_index("cuProfilerStop"), [&](Simulator& simulator) {
    simulator.plain_call(0, callback_id("cuProfilerStop"));
    return kSuccess;
  });
}

// As the runtime library does: its call contains the driver's.
// NOLINTNEXTLINE(readability-identifier-naming): the name in libcudart
SIMULATOR_EXPORT int cudaProfilerStart() {
  return driver_call(function_index("cuProfilerStart"), [&](Simulator& simulator) {
    simulator.plain_call(callback_id("cudaProfilerStart_v4000"), callback_id("cuProfilerStart"));
    return kSuccess;
  });
}

// NOLINTNEXTLINE(readability-identifier-naming): the name in libcudart
SIMULATOR_EXPORT int cudaProfilerStop() {
  return driver_call(function_index("cuProfilerStop"), [&](Simulator& simulator) {
    simulator.plain_call(callback_id("cudaProfilerStop_v4000"), callback_id("cuProfilerStop"));
    return kSuccess;
  });
}

SIMULATOR_EXPORT int cuGetErrorName(int error, const char** name) {
  for (const ErrorText& row : kErrorTexts) {
    if (row.code != error) continue;
    *name = row.name;
    return kSuccess;
  }
  return kInvalidValue;
}

SIMULATOR_EXPORT int cuGetErrorString(int error, const char** text) {
  for (const ErrorText& row : kErrorTexts) {
    if (row.code != error) continue;
    *text = row.text;
    return kSuccess;
  }
  return kInvalidValue;
}
