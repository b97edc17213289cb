// The libcupti and libcuda of this process: found, checked and opened at run time, never linked.
//
// This is the only place that knows CUPTI versions. All other code asks a Library for a stride, a feature or a
// function; a function that this version lacks is a null pointer.
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
#include "cupti/clock.h"
#include "cupti/failure.h"

namespace collector::cupti {

using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
using SubscriberCallback = void (*)(void* user, uint32_t domain, uint32_t callback_id, const void* data);

// The argument of cuptiSubscribe_v2: 32 bytes in 13.0 and 13.1, which refuse any other size, and 40 bytes from 13.2.
struct SubscriberParams {
  size_t struct_size;
  const char* subscriber_name;
  char* holder_name;
  size_t holder_name_bytes;
  uint8_t allow_multiple;
  uint8_t reserved[7];
};

// NOLINTBEGIN(readability-identifier-naming): the members bear NVIDIA's own names.

// Functions of libcupti; null if the library lacks the function. The signatures are those of 12.0; they never changed.
struct CuptiFunctions {
  Result (*GetVersion)(uint32_t*) = nullptr;
  Result (*GetResultString)(Result, const char**) = nullptr;
  Result (*GetTimestamp)(uint64_t*) = nullptr;
  Result (*GetCallbackName)(CallbackDomain, uint32_t, const char**) = nullptr;
  Result (*Subscribe)(void**, SubscriberCallback, void*) = nullptr;
  Result (*Subscribe_v2)(void**, SubscriberCallback, void*, SubscriberParams*) = nullptr;
  Result (*Unsubscribe)(void*) = nullptr;
  Result (*EnableCallback)(uint32_t, void*, uint32_t, uint32_t) = nullptr;
  Result (*GetContextId)(void*, uint32_t*) = nullptr;
  Result (*GetStreamIdEx)(void*, void*, uint8_t, uint32_t*) = nullptr;
  Result (*GetGraphId)(void*, uint32_t*) = nullptr;
  Result (*GetGraphExecId)(void*, uint32_t*) = nullptr;
  Result (*GetGraphNodeId)(void*, uint64_t*) = nullptr;
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

// The files to open. If empty: COLLECTOR_LIBCUPTI and COLLECTOR_LIBCUDA, else the files that a search finds.
struct LibraryPaths {
  std::string libcupti;
  std::string libcuda;
  std::vector<std::string> search_roots;  // site-packages folders that may hold NVIDIA's wheels
};

struct Device {
  int ordinal;
  std::string name;
};

// Features that depend on the version. `collector info` prints them, and the session uses them.
enum class Feature : uint8_t {
  kDeclineBuffers,             // a null buffer is a drop, not a crash (CUPTI API 27, CUDA 12.9)
  kPerThreadBuffers,           // attribute 9 exists (12.3)
  kPerThreadBuffersByDefault,  // ... and is on by default (13.0)
  kApiFilters,                 // noisy API calls can be left out (12.5)
  kSyncRecordFilter,           // only completed waits are recorded (12.8)
  kHolderName,                 // a refused subscription can name its holder (13.0)
  kDisablingKernelsIsSafe,     // disabling them can deadlock in 13.0.48; fixed by 13.0 U1
  // A flush while the program runs can crash in 13.0.48. The flush at the end of a session is unavoidable.
  kFlushingIsSafe,
  kGraphUpdates,    // an update of an executable graph is called back (13.0)
  kSourceGraphIds,  // kernels and copies contain the id of the graph they were captured in (13.4)
};

class Library {
 public:
  using Opened = std::variant<std::shared_ptr<const Library>, Failure>;

  // Finds, checks and opens both libraries. The same files give the same instance. Nothing is ever closed, because
  // CUPTI's threads and callbacks may outlive any session. libcupti is called only after a real driver is loaded:
  // without a driver, any call to 13.2 ends in unbounded recursion.
  static Opened open(const LibraryPaths& paths);

  // The existing files among which a search for libcupti chooses, best first, for any driver. The loader's path is not
  // searched.
  static std::vector<std::string> candidates(const LibraryPaths& paths);

  // Opens a libcupti that only steps through records, without a driver. For tests on recorded buffers. It works with
  // 12.0 to 13.1; later versions return 999 or crash without a driver.
  static Opened open_for_decoding(const std::string& libcupti);

  // A library of the given version that consists only of its table of layouts.
  static std::shared_ptr<const Library> layouts_only(int cuda_version);

  const CuptiFunctions& cupti() const { return cupti_; }
  const DriverFunctions& driver() const { return driver_; }
  // CUPTI's clock. It belongs to the process, and so is not a part of what never changes here.
  Clock& clock() const { return *clock_; }
  const std::string& cupti_path() const { return cupti_path_; }
  // Why this libcupti was taken, as a clause: "COLLECTOR_LIBCUPTI names it".
  const std::string& cupti_reason() const { return cupti_reason_; }
  // The libcuptis that were found before it and cannot be used, each with the cause.
  const std::vector<std::pair<std::string, std::string>>& passed_over() const { return passed_over_; }
  // The path without the folders that identify the machine, for files: see collector/text/library_path.py.
  std::string portable_path() const;
  const std::string& driver_path() const { return driver_path_; }
  uint32_t api_version() const { return api_version_; }
  int cuda_version() const { return cuda_version_; }      // 12040 means 12.4
  int driver_version() const { return driver_version_; }  // in the same encoding
  bool simulated() const { return simulator_instance_ != nullptr; }
  bool has(Feature feature) const;
  std::map<std::string, bool> features() const;

  // Bytes from one record of this kind to the next in this library's buffers. 0 if the stride could not be determined;
  // the library must then be asked for each next record.
  uint32_t stride(ActivityKind kind) const;

  // The name of an API function without its version suffix: "cudaLaunchKernel". Empty if the library has no name for
  // it.
  std::string callback_name(CallbackDomain domain, uint32_t callback_id) const;

  // CUPTI's text for a result, or "".
  std::string text_of(Result result) const;

  // Initialises CUDA. The reason why nothing can be traced here; no value if there is a device.
  std::optional<Failure> initialise_driver() const;

  // Devices and their names; empty until the program has initialised CUDA.
  std::vector<Device> devices() const;

 private:
  friend class Finder;
  void learn_strides();
  void set_version(uint32_t api_version);
  // Whether this object still describes the library. Only a simulator that has become another GPU makes it false.
  bool current() const { return simulator_instance_ == nullptr || simulator_instance_() == simulated_instance_; }

  CuptiFunctions cupti_;
  std::unique_ptr<Clock> clock_ = std::make_unique<Clock>(nullptr);
  DriverFunctions driver_;
  std::string cupti_path_;
  std::string cupti_reason_;
  std::vector<std::pair<std::string, std::string>> passed_over_;
  std::string driver_path_;
  uint32_t api_version_ = 0;
  int cuda_version_ = 0;
  int driver_version_ = 0;
  const void* (*simulator_instance_)() = nullptr;
  const void* simulated_instance_ = nullptr;
  uint32_t strides_[64] = {};
};

}  // namespace collector::cupti
