#include "cupti/library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "cupti/process_use.h"
#include "cupti/trial.h"
#include "cupti/version_checks.h"
#include "threads/mutex.h"
#include "threads/not_cancelled.h"

namespace collector::cupti {
namespace {

// The folder of a toolkit that holds the libraries of this machine's architecture.
#if defined(__aarch64__)
constexpr const char* kToolkitTarget = "/targets/sbsa-linux/lib/";
#else
constexpr const char* kToolkitTarget = "/targets/x86_64-linux/lib/";
#endif

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_file(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string path_of(void* handle, const std::string& asked) {
  struct link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0') return map->l_name;
  return asked;
}

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown loader error" : text;
}

// One loaded library. A simulator of an old CUPTI exports every function and reports which functions that version had.
class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {
    has_ = reinterpret_cast<int (*)(const char*)>(::dlsym(handle, "collector_simulator_has"));
  }

  void* find(const char* name) const {
    constexpr std::string_view kControl = "collector_simulator_";
    const bool is_control = std::string_view(name).substr(0, kControl.size()) == kControl;
    if (has_ != nullptr && !is_control && has_(name) == 0) return nullptr;
    return ::dlsym(handle_, name);
  }

  template <typename Function>
  void load(Function& slot, const char* name) const {
    slot = reinterpret_cast<Function>(find(name));
  }

 private:
  void* handle_;
  int (*has_)(const char*);
};

CuptiFunctions load_cupti(const Symbols& symbols) {
  CuptiFunctions f;
  symbols.load(f.GetVersion, "cuptiGetVersion");
  symbols.load(f.GetResultString, "cuptiGetResultString");
  symbols.load(f.GetTimestamp, "cuptiGetTimestamp");
  symbols.load(f.GetCallbackName, "cuptiGetCallbackName");
  symbols.load(f.Subscribe, "cuptiSubscribe");
  symbols.load(f.Subscribe_v2, "cuptiSubscribe_v2");
  symbols.load(f.Unsubscribe, "cuptiUnsubscribe");
  symbols.load(f.EnableCallback, "cuptiEnableCallback");
  symbols.load(f.GetContextId, "cuptiGetContextId");
  symbols.load(f.GetStreamIdEx, "cuptiGetStreamIdEx");
  symbols.load(f.GetGraphId, "cuptiGetGraphId");
  symbols.load(f.GetGraphExecId, "cuptiGetGraphExecId");
  symbols.load(f.GetGraphNodeId, "cuptiGetGraphNodeId");
  symbols.load(f.SetThreadIdType, "cuptiSetThreadIdType");
  symbols.load(f.ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks");
  symbols.load(f.ActivityEnable, "cuptiActivityEnable");
  symbols.load(f.ActivityEnableAndDump, "cuptiActivityEnableAndDump");
  symbols.load(f.ActivityDisable, "cuptiActivityDisable");
  symbols.load(f.ActivityFlushAll, "cuptiActivityFlushAll");
  symbols.load(f.ActivityGetNextRecord, "cuptiActivityGetNextRecord");
  symbols.load(f.ActivityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords");
  symbols.load(f.ActivitySetAttribute, "cuptiActivitySetAttribute");
  symbols.load(f.ActivityPushExternalCorrelationId, "cuptiActivityPushExternalCorrelationId");
  symbols.load(f.ActivityPopExternalCorrelationId, "cuptiActivityPopExternalCorrelationId");
  symbols.load(f.ActivityEnableRuntimeApi, "cuptiActivityEnableRuntimeApi");
  symbols.load(f.ActivityEnableDriverApi, "cuptiActivityEnableDriverApi");
  symbols.load(f.ActivityEnableAllSyncRecords, "cuptiActivityEnableAllSyncRecords");
  symbols.load(f.GetTimestamp_v2, "cuptiGetTimestamp_v2");
  symbols.load(f.ActivityRegisterCallbacks_v2, "cuptiActivityRegisterCallbacks_v2");
  symbols.load(f.ActivityEnable_v2, "cuptiActivityEnable_v2");
  symbols.load(f.ActivityEnableAndDump_v2, "cuptiActivityEnableAndDump_v2");
  symbols.load(f.ActivityDisable_v2, "cuptiActivityDisable_v2");
  symbols.load(f.ActivityGetNextRecord_v2, "cuptiActivityGetNextRecord_v2");
  symbols.load(f.ActivityGetNumDroppedRecords_v2, "cuptiActivityGetNumDroppedRecords_v2");
  symbols.load(f.ActivityGetAttribute_v2, "cuptiActivityGetAttribute_v2");
  symbols.load(f.ActivitySetAttribute_v2, "cuptiActivitySetAttribute_v2");
  symbols.load(f.ActivityPushExternalCorrelationId_v2, "cuptiActivityPushExternalCorrelationId_v2");
  symbols.load(f.ActivityPopExternalCorrelationId_v2, "cuptiActivityPopExternalCorrelationId_v2");
  symbols.load(f.ActivityEnableRuntimeApi_v2, "cuptiActivityEnableRuntimeApi_v2");
  symbols.load(f.ActivityEnableDriverApi_v2, "cuptiActivityEnableDriverApi_v2");
  return f;
}

// The first required function that the library lacks, or null. All other functions are optional.
const char* missing_function(const CuptiFunctions& f) {
  if (f.GetVersion == nullptr) return "cuptiGetVersion";
  if (f.GetTimestamp == nullptr) return "cuptiGetTimestamp";
  if (f.Subscribe == nullptr) return "cuptiSubscribe";
  if (f.Unsubscribe == nullptr) return "cuptiUnsubscribe";
  if (f.ActivityRegisterCallbacks == nullptr) return "cuptiActivityRegisterCallbacks";
  if (f.ActivityEnable == nullptr) return "cuptiActivityEnable";
  if (f.ActivityDisable == nullptr) return "cuptiActivityDisable";
  if (f.ActivityFlushAll == nullptr) return "cuptiActivityFlushAll";
  if (f.ActivityGetNextRecord == nullptr) return "cuptiActivityGetNextRecord";
  return nullptr;
}

DriverFunctions load_driver(const Symbols& symbols) {
  DriverFunctions f;
  symbols.load(f.Init, "cuInit");
  symbols.load(f.DriverGetVersion, "cuDriverGetVersion");
  symbols.load(f.DeviceGetCount, "cuDeviceGetCount");
  symbols.load(f.DeviceGet, "cuDeviceGet");
  symbols.load(f.DeviceGetName, "cuDeviceGetName");
  symbols.load(f.DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState");
  symbols.load(f.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  symbols.load(f.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  symbols.load(f.CtxGetCurrent, "cuCtxGetCurrent");
  symbols.load(f.CtxPushCurrent, "cuCtxPushCurrent_v2");
  symbols.load(f.CtxPopCurrent, "cuCtxPopCurrent_v2");
  symbols.load(f.CtxSynchronize, "cuCtxSynchronize");
  return f;
}

uint32_t layout_bytes(ActivityKind kind, int cuda_version) {
  uint32_t bytes = 0;
  for (const Layout& layout : kLayouts) {
    if (layout.kind == kind && layout.since_cuda <= cuda_version) bytes = layout.bytes;
  }
  return bytes;
}

std::string without_version_suffix(std::string name) {
  // cudaLaunchKernel_v7000, cudaMemcpyAsync_ptsz_v7000, cuMemcpyHtoD_v2: users know these functions without the suffix.
  const size_t at = name.rfind("_v");
  if (at != std::string::npos && at + 2 < name.size() &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 2, name.end(),
                  [](unsigned char c) { return std::isdigit(c) != 0; })) {
    name.resize(at);
  }
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    const size_t bytes = std::strlen(suffix);
    if (name.size() > bytes && name.compare(name.size() - bytes, bytes, suffix) == 0) name.resize(name.size() - bytes);
  }
  return name;
}

}  // namespace

// Finds and checks the two libraries, in an order that cannot crash.
class Finder {
 public:
  explicit Finder(const LibraryPaths& paths) : paths_(paths) {
    if (paths_.libcupti.empty()) paths_.libcupti = environment("COLLECTOR_LIBCUPTI");
    if (paths_.libcuda.empty()) paths_.libcuda = environment("COLLECTOR_LIBCUDA");
  }

  std::string key() const { return paths_.libcupti + '\n' + paths_.libcuda; }

  Library::Opened open() {
    auto library = std::make_shared<Library>();
    if (auto failure = open_driver(*library)) return *failure;
    if (auto failure = open_cupti(*library)) {
      failure->driver = OpenedDriver{library->driver_path_, library->driver_version_};
      return *failure;
    }
    library->learn_strides();
    return std::shared_ptr<const Library>(library);
  }

  static std::optional<Failure> load_cupti_file(Library& library, void* handle, const std::string& path) {
    const Symbols symbols(handle);
    library.cupti_ = load_cupti(symbols);
    library.cupti_path_ = path_of(handle, path);
    symbols.load(library.simulator_instance_, "collector_simulator_instance");
    if (library.simulated()) library.simulated_instance_ = library.simulator_instance_();
    if (const char* name = missing_function(library.cupti_)) {
      return Failure{FailureKind::kCuptiNotFound, library.cupti_path_ + " has no " + name,
                     "Point COLLECTOR_LIBCUPTI at a libcupti of CUDA 12.0 or newer"};
    }
    // 13.2 has cuptiActivityEnable_v2 but not yet the session query of 13.3. The exported names show both without a
    // call.
    const bool is_13_2 =
        symbols.find("cuptiActivityEnable_v2") != nullptr && symbols.find("cuptiIsTracingSessionRunning") == nullptr;
    if (needs_trial(is_13_2, library.driver_version_)) {
      if (auto failure = check_trial(library.cupti_path_, try_in_child(library.driver_path_, library.cupti_path_))) {
        return failure;
      }
    }
    uint32_t api_version = 0;
    if (const Result result = library.cupti_.GetVersion(&api_version); result != Result::kSuccess) {
      return describe("cuptiGetVersion", result, library.text_of(result));
    }
    library.set_version(api_version);
    return check_cupti(library.cupti_path_, api_version, environment("COLLECTOR_ALLOW_UNTESTED_CUPTI") == "1");
  }

  std::vector<std::string> existing_candidates() const {
    std::vector<std::string> existing;
    if (!paths_.libcupti.empty() && is_file(paths_.libcupti)) existing.push_back(paths_.libcupti);
    for (const std::string& candidate : candidates(INT_MAX)) {
      if (candidate.find('/') != std::string::npos && is_file(candidate)) existing.push_back(candidate);
    }
    return existing;
  }

 private:
  std::optional<Failure> open_driver(Library& library) const {
    const std::string name = paths_.libcuda.empty() ? "libcuda.so.1" : paths_.libcuda;
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      return Failure{FailureKind::kDriverNotFound,
                     "no NVIDIA driver in this process or on this machine (" + loader_error() + ")",
                     paths_.libcuda.empty() ? "Install the NVIDIA driver; in a container, run it with --gpus all"
                                            : "Correct COLLECTOR_LIBCUDA, or unset it to search"};
    }
    library.driver_ = load_driver(Symbols(handle));
    library.driver_path_ = path_of(handle, name);
    if (library.driver_.DriverGetVersion == nullptr || library.driver_.Init == nullptr) {
      return Failure{FailureKind::kDriverNotFound, library.driver_path_ + " is not an NVIDIA driver library",
                     "Unset COLLECTOR_LIBCUDA, or point it at libcuda.so.1"};
    }
    const int result = library.driver_.DriverGetVersion(&library.driver_version_);
    return check_driver(library.driver_path_, result, library.driver_version_);
  }

  std::optional<Failure> open_cupti(Library& library) {
    if (!paths_.libcupti.empty()) {
      void* handle = ::dlopen(paths_.libcupti.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) {
        return Failure{FailureKind::kCuptiNotFound, "cannot load " + paths_.libcupti + " (" + loader_error() + ")",
                       "Correct COLLECTOR_LIBCUPTI, or unset it to search"};
      }
      library.cupti_reason_ = "COLLECTOR_LIBCUPTI names it";
      return load_cupti_file(library, handle, paths_.libcupti);
    }
    for (const std::string& candidate : candidates(library.driver_version_)) {
      // A copy that is already mapped must be reused: a second copy in one process collides with it.
      void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_NOLOAD);
      if (handle == nullptr) continue;
      library.cupti_reason_ = "this process had loaded it already";
      return load_cupti_file(library, handle, candidate);
    }
    std::string last_error = "none in site-packages, CUDA_HOME, /usr/local/cuda or on the loader path";
    std::optional<Failure> first_failure;
    for (const std::string& candidate : candidates(library.driver_version_)) {
      if (candidate.find('/') != std::string::npos && !is_file(candidate)) continue;
      void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) {
        last_error = loader_error();
        if (candidate.find('/') != std::string::npos) library.passed_over_.emplace_back(candidate, last_error);
        continue;
      }
      library.cupti_reason_ = !library.passed_over_.empty() ? "the first that can be used" : "the first that was found";
      std::optional<Failure> failure = load_cupti_file(library, handle, candidate);
      if (!failure) return std::nullopt;
      // Nothing holds a pointer into it yet: at most its version was asked for.
      ::dlclose(handle);
      library.passed_over_.emplace_back(candidate, failure->cause);
      if (!first_failure) first_failure = std::move(failure);
    }
    if (first_failure) return first_failure;
    return Failure{
        FailureKind::kCuptiNotFound, "no libcupti was found (" + last_error + ")",
        library.driver_version_ >= 13000 ? "pip install nvidia-cuda-cupti" : "pip install nvidia-cuda-cupti-cu12"};
  }

  // The possible places of libcupti, best first. A libcupti of a newer CUDA major than the driver's is left out, as it
  // cannot work.
  std::vector<std::string> candidates(int driver_version) const {
    std::vector<int> majors;
    for (const int major : {13, 12}) {
      if (driver_version >= major * 1000) majors.push_back(major);
    }
    std::vector<std::string> result;
    for (const std::string& root : paths_.search_roots) {
      for (const int major : majors) {
        const std::string folder =
            major == 12 ? "/nvidia/cuda_cupti/lib/" : "/nvidia/cu" + std::to_string(major) + "/lib/";
        result.push_back(root + folder + "libcupti.so." + std::to_string(major));
      }
    }
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const std::string home = environment(variable); !home.empty()) append_toolkit(home, majors, result);
    }
    append_toolkit("/usr/local/cuda", majors, result);
    for (const int major : majors) result.push_back("libcupti.so." + std::to_string(major));
    return result;
  }

  static void append_toolkit(const std::string& home, const std::vector<int>& majors, std::vector<std::string>& out) {
    for (const int major : majors) {
      for (const char* folder : {"/extras/CUPTI/lib64/", "/lib64/", kToolkitTarget}) {
        out.push_back(home + folder + "libcupti.so." + std::to_string(major));
      }
    }
  }

  LibraryPaths paths_;
};

std::string Library::portable_path() const {
  constexpr std::array<std::string_view, 4> kSystem{"/usr/", "/opt/", "/lib/", "/lib64/"};
  constexpr std::array<std::string_view, 2> kPackages{"/site-packages/", "/dist-packages/"};
  for (const std::string_view folder : kSystem) {
    if (cupti_path_.compare(0, folder.size(), folder) == 0) return cupti_path_;
  }
  size_t last = cupti_path_.rfind('/');
  for (const std::string_view folder : kPackages) last = std::min(last, cupti_path_.find(folder));
  return last == std::string::npos ? cupti_path_ : cupti_path_.substr(last + 1);
}

Library::Opened Library::open(const LibraryPaths& paths) {
  const threads::NotCancelled not_cancelled;
  if (auto failure = begin_use()) return *failure;
  struct OpenedLibraries {
    threads::Mutex mutex;
    std::map<std::string, std::shared_ptr<const Library>> by_key GUARDED_BY(mutex);
  };
  // Never destroyed: a daemon thread may still use it while the process ends.
  static auto& opened = *new OpenedLibraries;
  Finder finder(paths);
  const threads::MutexLock lock(opened.mutex);
  const std::string key = finder.key();
  const auto found = opened.by_key.find(key);
  if (found != opened.by_key.end() && found->second->current()) return found->second;
  Opened result = finder.open();
  if (const auto* library = std::get_if<std::shared_ptr<const Library>>(&result)) opened.by_key[key] = *library;
  return result;
}

std::vector<std::string> Library::candidates(const LibraryPaths& paths) { return Finder(paths).existing_candidates(); }

Library::Opened Library::open_for_decoding(const std::string& libcupti) {
  void* handle = ::dlopen(libcupti.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Failure{FailureKind::kCuptiNotFound, "cannot load " + libcupti + " (" + loader_error() + ")", ""};
  }
  auto library = std::make_shared<Library>();
  if (auto failure = Finder::load_cupti_file(*library, handle, libcupti)) return *failure;
  library->learn_strides();
  return std::shared_ptr<const Library>(library);
}

std::shared_ptr<const Library> Library::layouts_only(int cuda_version) {
  auto library = std::make_shared<Library>();
  library->cuda_version_ = cuda_version;
  library->api_version_ = static_cast<uint32_t>(cuda_version / 1000 * 10000 + cuda_version % 1000 * 10);
  for (uint32_t kind = 0; kind < std::size(library->strides_); ++kind) {
    const auto as_kind = static_cast<ActivityKind>(kind);
    library->strides_[kind] =
        layout_bytes(as_kind == ActivityKind::kKernel ? ActivityKind::kConcurrentKernel : as_kind, cuda_version);
  }
  return library;
}

void Library::set_version(uint32_t api_version) {
  api_version_ = api_version;
  cuda_version_ = cuda_version_of(api_version);
}

void Library::learn_strides() const {
  // Let the library walk a buffer in which every aligned word could begin a record of the kind. The offset of the
  // second record that it finds is the size of the first one. The stride depends on no other byte of a record.
  constexpr size_t kBytes = 4096;
  alignas(8) std::array<uint8_t, kBytes> buffer;
  for (const Layout& layout : kLayouts) {
    const auto kind = static_cast<uint32_t>(layout.kind);
    if (strides_[kind] != 0) continue;
    for (size_t at = 0; at < kBytes; at += 8) {
      const uint64_t word = kind;
      std::memcpy(buffer.data() + at, &word, sizeof(word));
    }
    uint8_t* record = nullptr;
    if (activity_api_->next_record(buffer.data(), kBytes, &record) != Result::kSuccess) continue;
    if (record != buffer.data()) continue;
    if (activity_api_->next_record(buffer.data(), kBytes, &record) != Result::kSuccess) continue;
    const std::ptrdiff_t stride = record - buffer.data();
    const uint32_t least = layout_bytes(layout.kind, 12000);
    if (stride >= static_cast<std::ptrdiff_t>(least) && stride <= 1024 && stride % 8 == 0) {
      strides_[kind] = static_cast<uint32_t>(stride);
    }
  }
  strides_[static_cast<uint32_t>(ActivityKind::kKernel)].store(stride(ActivityKind::kConcurrentKernel));
}

bool Library::has(Feature feature) const {
  switch (feature) {
    case Feature::kDeclineBuffers:
      return api_version_ >= 27;
    case Feature::kPerThreadBuffers:
      return cuda_version_ >= 12030;
    case Feature::kPerThreadBuffersByDefault:
      return cuda_version_ >= 13000;
    case Feature::kApiFilters:
      return cupti_.ActivityEnableRuntimeApi != nullptr && cupti_.ActivityEnableDriverApi != nullptr;
    case Feature::kSyncRecordFilter:
      return cupti_.ActivityEnableAllSyncRecords != nullptr;
    case Feature::kHolderName:
      return cupti_.Subscribe_v2 != nullptr;
    case Feature::kDisablingKernelsIsSafe:
    case Feature::kFlushingIsSafe:
      return api_version_ != 130000;
    case Feature::kGraphUpdates:
      return calls_back_for_graph_updates(cuda_version_);
    case Feature::kSourceGraphIds:
      return cuda_version_ >= 13040;
    case Feature::kPeerCopiesAreSafe:
      return cuda_version_ >= 13050;
    case Feature::kSeveralSubscribers:
      // 13.2 lacks half of the functions, and 13.3.35 can crash when several subscribers call at once.
      return api_version_ >= 130301 && driver_version_ >= 13030 && activity_api_->has_v2();
  }
  return false;
}

std::map<std::string, bool> Library::features() const {
  return {
      {"decline buffers", has(Feature::kDeclineBuffers)},
      {"per-thread buffers", has(Feature::kPerThreadBuffers)},
      {"per-thread buffers by default", has(Feature::kPerThreadBuffersByDefault)},
      {"API call filters", has(Feature::kApiFilters)},
      {"completed waits only", has(Feature::kSyncRecordFilter)},
      {"name of a conflicting subscriber", has(Feature::kHolderName)},
      {"safe disabling of kernel tracing", has(Feature::kDisablingKernelsIsSafe)},
      {"safe flushing while the program runs", has(Feature::kFlushingIsSafe)},
      {"callbacks about graph updates", has(Feature::kGraphUpdates)},
      {"source graph ids", has(Feature::kSourceGraphIds)},
      {"safe recording of peer copies", has(Feature::kPeerCopiesAreSafe)},
      {"several subscribers", has(Feature::kSeveralSubscribers)},
  };
}

uint32_t Library::stride(ActivityKind kind) const {
  const auto index = static_cast<uint32_t>(kind);
  return index < std::size(strides_) ? strides_[index].load(std::memory_order_relaxed) : 0U;
}

void Library::keep_callback_names() const {
  if (has_callback_names_.load(std::memory_order_relaxed)) return;
  CallbackNames names;  // memory may run out meanwhile
  for (const auto domain : {CallbackDomain::kDriverApi, CallbackDomain::kRuntimeApi}) {
    std::vector<std::string>& of_domain = names[index_of(domain)];
    for (uint32_t id = 0; id < kCallbackIds; ++id) of_domain.push_back(callback_name(domain, id));
  }
  callback_names_ = std::move(names);
  has_callback_names_.store(true, std::memory_order_release);
}

std::string Library::callback_name(CallbackDomain domain, uint32_t callback_id) const {
  const bool is_of_api = domain == CallbackDomain::kDriverApi || domain == CallbackDomain::kRuntimeApi;
  if (is_of_api && callback_id < kCallbackIds && has_callback_names_.load(std::memory_order_acquire)) {
    return callback_names_[index_of(domain)][callback_id];
  }
  const char* name = nullptr;
  if (cupti_.GetCallbackName == nullptr) return "";
  if (cupti_.GetCallbackName(domain, callback_id, &name) != Result::kSuccess || name == nullptr) return "";
  return without_version_suffix(name);
}

std::string Library::text_of(Result result) const {
  const char* text = nullptr;
  if (cupti_.GetResultString == nullptr) return "";
  if (cupti_.GetResultString(result, &text) != Result::kSuccess || text == nullptr) return "";
  return text;
}

std::optional<Failure> Library::initialise_driver() const {
  const int result = driver_.Init(0);
  if (result == 0 && !devices().empty()) return std::nullopt;
  return Failure{FailureKind::kDriverNotFound,
                 "the driver has no usable device (cuInit: " + std::to_string(result) + ")",
                 "Check that nvidia-smi lists a device and that CUDA_VISIBLE_DEVICES does not hide it"};
}

std::vector<Device> Library::devices() const {
  std::vector<Device> devices;
  int count = 0;
  if (driver_.DeviceGetCount == nullptr || driver_.DeviceGet == nullptr || driver_.DeviceGetName == nullptr) return {};
  if (driver_.DeviceGetCount(&count) != 0) return {};
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    char name[256] = "";
    if (driver_.DeviceGet(&device, ordinal) != 0) continue;
    if (driver_.DeviceGetName(name, static_cast<int>(sizeof(name)) - 1, device) != 0) continue;
    devices.push_back({ordinal, name});
  }
  return devices;
}

}  // namespace collector::cupti
