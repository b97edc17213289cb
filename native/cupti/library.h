// The libcupti and libcuda of this process: found, checked, opened, never linked.
//
// This is the only place that knows a CUPTI version. Everything else asks a Library for a stride, a feature or a
// function, and a function that this version does not have is a null pointer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cupti/abi.h"
#include "cupti/failure.h"

namespace collector::cupti {

using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
using SubscriberCallback = void (*)(void* user, uint32_t domain, uint32_t callback_id, const void* data);

// Argument of cuptiSubscribe_v2: 32 bytes in 13.0 and 13.1, which refuse any other size; 40 from 13.2.
struct SubscriberParams {
  size_t struct_size;
  const char* subscriber_name;
  char* holder_name;
  size_t holder_name_bytes;
  uint8_t allow_multiple;
  uint8_t reserved[7];
};

// NOLINTBEGIN(readability-identifier-naming): the members bear NVIDIA's own names.

// Functions of libcupti; null where the library has none. Signatures are those of 12.0, which never changed.
struct CuptiFunctions {
  Result (*GetVersion)(uint32_t*) = nullptr;
  Result (*GetResultString)(Result, const char**) = nullptr;
  Result (*GetTimestamp)(uint64_t*) = nullptr;
  Result (*GetCallbackName)(CallbackDomain, uint32_t, const char**) = nullptr;
  Result (*Subscribe)(void**, SubscriberCallback, void*) = nullptr;
  Result (*Subscribe_v2)(void**, SubscriberCallback, void*, SubscriberParams*) = nullptr;
  Result (*Unsubscribe)(void*) = nullptr;
  Result (*SetThreadIdType)(uint32_t) = nullptr;
  Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted) = nullptr;
  Result (*ActivityEnable)(ActivityKind) = nullptr;
  Result (*ActivityEnableAndDump)(ActivityKind) = nullptr;
  Result (*ActivityDisable)(ActivityKind) = nullptr;
  Result (*ActivityFlushAll)(uint32_t) = nullptr;
  Result (*ActivityGetNextRecord)(uint8_t*, size_t, uint8_t**) = nullptr;
  Result (*ActivityGetNumDroppedRecords)(void*, uint32_t, size_t*) = nullptr;
  Result (*ActivitySetAttribute)(Attribute, size_t*, void*) = nullptr;
  Result (*ActivityPushExternalCorrelationId)(ExternalCorrelationKind, uint64_t) = nullptr;
  Result (*ActivityPopExternalCorrelationId)(ExternalCorrelationKind, uint64_t*) = nullptr;
  Result (*ActivityEnableRuntimeApi)(uint32_t, uint8_t) = nullptr;
  Result (*ActivityEnableDriverApi)(uint32_t, uint8_t) = nullptr;
  Result (*ActivityEnableAllSyncRecords)(uint8_t) = nullptr;
};

// Functions of the driver, with its plain int results.
struct DriverFunctions {
  int (*Init)(unsigned) = nullptr;
  int (*DriverGetVersion)(int*) = nullptr;
  int (*DeviceGetCount)(int*) = nullptr;
  int (*DeviceGet)(int*, int) = nullptr;
  int (*DeviceGetName)(char*, int, int) = nullptr;
  int (*DevicePrimaryCtxGetState)(int, unsigned*, int*) = nullptr;
  int (*DevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*DevicePrimaryCtxRelease)(int) = nullptr;
  int (*CtxGetCurrent)(void**) = nullptr;
  int (*CtxPushCurrent)(void*) = nullptr;
  int (*CtxPopCurrent)(void**) = nullptr;
  int (*CtxSynchronize)() = nullptr;
};

// NOLINTEND(readability-identifier-naming)

// Which files to open. Empty: COLLECTOR_LIBCUPTI / COLLECTOR_LIBCUDA, else search.
struct LibraryPaths {
  std::string libcupti;
  std::string libcuda;
  std::vector<std::string> search_roots;  // site-packages folders that may hold NVIDIA's wheels
};

struct Device {
  int ordinal;
  std::string name;
};

// What a version can do; printed by `collector info`, and asked by the session.
enum class Feature : uint8_t {
  kDeclineBuffers,             // a null buffer is a drop, not a crash (CUPTI API 27, CUDA 12.9)
  kPerThreadBuffers,           // attribute 9 exists (12.3)
  kPerThreadBuffersByDefault,  // ... and is on (13.0)
  kApiFilters,                 // noisy API calls can be left out (12.5)
  kSyncRecordFilter,           // only completed waits are recorded (12.8)
  kHolderName,                 // a refused subscription can name its holder (13.0)
  kDisablingKernelsIsSafe,     // 13.0.48 can deadlock in it; fixed by 13.0 U1
  kFlushingIsSafe,             // ... 13.0.48 can crash in it; here: while the program runs, at its end it has to be
  kSourceGraphIds,             // kernels and copies name the graph they were captured in (13.4)
};

class Library {
 public:
  using Opened = std::variant<std::shared_ptr<const Library>, Failure>;

  // Finds, checks and opens both libraries. The same files give the same instance; nothing is ever closed, since
  // CUPTI's threads and callbacks may outlive any session. Calls libcupti only after a real driver is loaded:
  // 13.2 without one dies of unbounded recursion on any call.
  static Opened open(const LibraryPaths& paths);

  // Opens a libcupti to step through records with, without any driver. For tests on recorded buffers; works with
  // 12.0 to 13.1 (see reference: later versions answer 999 or crash).
  static Opened open_for_decoding(const std::string& libcupti);

  // A library of the given version that exists only as its table of layouts.
  static std::shared_ptr<const Library> layouts_only(int cuda_version);

  const CuptiFunctions& cupti() const { return cupti_; }
  const DriverFunctions& driver() const { return driver_; }
  const std::string& cupti_path() const { return cupti_path_; }
  // The same without the folders that tell whose machine it is, for files: see collector/text/library_path.py.
  std::string portable_path() const;
  const std::string& driver_path() const { return driver_path_; }
  uint32_t api_version() const { return api_version_; }
  int cuda_version() const { return cuda_version_; }      // 12040 is 12.4
  int driver_version() const { return driver_version_; }  // likewise
  bool simulated() const { return simulator_instance_ != nullptr; }
  bool has(Feature feature) const;
  std::map<std::string, bool> features() const;

  // Bytes from one record of this kind to the next in this library's buffers; 0 when it could not be learnt, and
  // the record after must then be asked of the library.
  uint32_t stride(ActivityKind kind) const;

  // The name of an API function without its version suffix: "cudaLaunchKernel"; empty if the library has none.
  std::string callback_name(CallbackDomain domain, uint32_t callback_id) const;

  // CUPTI's text for a result, or "".
  std::string text_of(Result result) const;

  // Initialises CUDA. Why nothing can be traced here; none where there is a device.
  std::optional<Failure> initialise_driver() const;

  // Devices and their names; empty before the program initialised CUDA.
  std::vector<Device> devices() const;

 private:
  friend class Finder;
  void learn_strides();
  void set_version(uint32_t api_version);
  // Whether this still describes the library: always, but for a simulator that has become another GPU since.
  bool current() const { return simulator_instance_ == nullptr || simulator_instance_() == simulated_instance_; }

  CuptiFunctions cupti_;
  DriverFunctions driver_;
  std::string cupti_path_;
  std::string driver_path_;
  uint32_t api_version_ = 0;
  int cuda_version_ = 0;
  int driver_version_ = 0;
  const void* (*simulator_instance_)() = nullptr;
  const void* simulated_instance_ = nullptr;
  uint32_t strides_[64] = {};
};

// The newest CUDA version whose layouts this project has seen.
inline constexpr int kNewestKnownCuda = 13050;

}  // namespace collector::cupti
