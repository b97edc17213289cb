// The libcupti and libcuda of this process: found, checked and opened at run time, never linked.
//
// This is the only place that knows CUPTI versions. All other code asks a Library for a stride, a feature or a
// function; a function that this version lacks is a null pointer.
#pragma once

#include <array>
#include <atomic>
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
#include "cupti/activity_api.h"
#include "cupti/clock.h"
#include "cupti/cupti_functions.h"
#include "cupti/failure.h"

namespace collector::cupti {

// NOLINTBEGIN(readability-identifier-naming): the members bear NVIDIA's own names.

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
  // Recording copies between GPUs lets no launch of a CUDA graph fail later (13.5). They are recorded only on request
  // with every version: see docs/cupti.md.
  kPeerCopiesAreSafe,
  kGraphUpdates,        // an update of an executable graph is called back (13.0)
  kSourceGraphIds,      // kernels and copies contain the id of the graph they were captured in (13.4)
  kSeveralSubscribers,  // a session can join other clients that allow it (13.3 U1, with a driver of 13.3, r610)
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
  // These two belong to the process, and so are no part of what never changes here: the Activity API, and CUPTI's
  // clock.
  ActivityApi& activity_api() const { return *activity_api_; }
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

  // Finds out the strides that are still unknown, through the form of the Activity API that is in use.
  void learn_strides() const;

  // The name of an API function without its version suffix: "cudaLaunchKernel". Empty if the library has no name for
  // it.
  std::string callback_name(CallbackDomain domain, uint32_t callback_id) const;
  // Asks for the names of all functions at once. From then on callback_name() needs no libcupti, which may be out of
  // use when the last rows are written. Called by one thread at a time.
  void keep_callback_names() const;

  // CUPTI's text for a result, or "".
  std::string text_of(Result result) const;

  // Initialises CUDA. The reason why nothing can be traced here; no value if there is a device.
  std::optional<Failure> initialise_driver() const;

  // Devices and their names; empty until the program has initialised CUDA.
  std::vector<Device> devices() const;

 private:
  friend class Finder;
  void set_version(uint32_t api_version);
  // Whether this object still describes the library. Only a simulator that has become another GPU makes it false.
  bool current() const { return simulator_instance_ == nullptr || simulator_instance_() == simulated_instance_; }

  CuptiFunctions cupti_;
  std::unique_ptr<ActivityApi> activity_api_ = std::make_unique<ActivityApi>(cupti_);
  std::unique_ptr<Clock> clock_ = std::make_unique<Clock>(*activity_api_);
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
  mutable std::array<std::atomic<uint32_t>, 64> strides_{};

  using CallbackNames = std::array<std::vector<std::string>, 2>;  // by index_of, then by id
  mutable CallbackNames callback_names_;
  mutable std::atomic<bool> has_callback_names_{false};
};

}  // namespace collector::cupti
