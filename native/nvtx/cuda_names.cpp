#include "nvtx/cuda_names.h"

#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

#include "nvtx/texts.h"

namespace collector::nvtx {
namespace {

using cupti::Library;
using cupti::Result;

// The driver's functions about numbers; it has them from CUDA 12.0 on.
struct Driver {
  int (*get_current_context)(void**) = nullptr;
  int (*get_context_id)(void*, unsigned long long*) = nullptr;
  int (*get_stream_context)(void*, void**) = nullptr;
  int (*get_stream_id)(void*, unsigned long long*) = nullptr;
};

// A program that has a handle has loaded the driver.
Driver loaded_driver() {
  const char* const named = std::getenv("COLLECTOR_LIBCUDA");
  const bool is_named = named != nullptr && *named != '\0';
  void* const library = ::dlopen(is_named ? named : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  Driver driver;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
  };
  find(driver.get_current_context, "cuCtxGetCurrent");
  find(driver.get_context_id, "cuCtxGetId");
  find(driver.get_stream_context, "cuStreamGetCtx");
  find(driver.get_stream_id, "cuStreamGetId");
  ::dlclose(library);  // the program's reference keeps it
  return driver;
}

std::optional<uint64_t> id_of_context(const Driver& driver, void* context) {
  unsigned long long id = 0;
  if (context == nullptr || driver.get_context_id == nullptr || driver.get_context_id(context, &id) != 0) return {};
  return id;
}

std::optional<uint64_t> id_of_stream(const Driver& driver, void* stream) {
  unsigned long long id = 0;
  if (driver.get_stream_id == nullptr || driver.get_stream_id(stream, &id) != 0) return {};
  return id;
}

void* context_of_stream(const Driver& driver, void* stream) {
  void* context = nullptr;
  if (driver.get_stream_context == nullptr || driver.get_stream_context(stream, &context) != 0) return nullptr;
  return context;
}

std::optional<uint32_t> id_of_context(const Library& library, void* context) {
  uint32_t id = 0;
  const auto get = library.cupti().GetContextId;
  if (context == nullptr || get == nullptr || get(context, &id) != Result::kSuccess) return {};
  return id;
}

std::optional<uint32_t> id_of_stream(const Library& library, void* context, void* stream) {
  // CUDA's handles of default streams; all others are addresses.
  constexpr uintptr_t kPerThread = 2;
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  void* const asked = handle <= kPerThread ? nullptr : stream;
  uint32_t id = 0;
  const auto get = library.cupti().GetStreamIdEx;
  if (get == nullptr || get(context, asked, handle == kPerThread ? 1 : 0, &id) != Result::kSuccess) return {};
  return id;
}

}  // namespace

template <typename Names, typename Key>
void CudaNames::put(Names& names, const Key& key, std::string_view name) {
  if (names.size() < kMostNames || names.count(key) != 0) {
    names[key] = name;
  } else {
    ++known_.dropped;
  }
}

void CudaNames::name_device(int ordinal, std::string_view name) {
  const threads::MutexLock lock(mutex_);
  put(known_.devices, ordinal, name);
}

void CudaNames::name_context(void* context, std::string_view name, const Library* library) {
  const Driver driver = loaded_driver();
  const auto driver_id = id_of_context(driver, context);
  const auto id = library == nullptr ? std::nullopt : id_of_context(*library, context);
  const threads::MutexLock lock(mutex_);
  if (id && driver_id) drivers_numbers_are_cuptis_ = drivers_numbers_are_cuptis_.value_or(true) && *id == *driver_id;
  if (id) {
    put(known_.contexts, *id, name);
  } else if (driver_id) {
    put(contexts_of_driver_, *driver_id, name);
  } else {
    ++known_.unknown;
  }
}

void CudaNames::name_stream(void* stream, std::string_view name, const Library* library) {
  const Driver driver = loaded_driver();
  void* const context = context_of_stream(driver, stream);
  const auto driver_context = id_of_context(driver, context);
  const auto driver_id = id_of_stream(driver, stream);
  const auto context_id = library == nullptr ? std::nullopt : id_of_context(*library, context);
  const auto id = library == nullptr ? std::nullopt : id_of_stream(*library, context, stream);
  const threads::MutexLock lock(mutex_);
  if (id && context_id && driver_id && driver_context) {
    const bool is_equal = *id == *driver_id && *context_id == *driver_context;
    drivers_numbers_are_cuptis_ = drivers_numbers_are_cuptis_.value_or(true) && is_equal;
  }
  if (id && context_id) {
    put(known_.streams, Place(*context_id, *id), name);
  } else if (driver_id && driver_context) {
    put(streams_of_driver_, std::pair(*driver_context, *driver_id), name);
  } else {
    ++known_.unknown;
  }
}

std::optional<bool> CudaNames::compared_numbers(const Library& library) {
  const Driver driver = loaded_driver();
  void* context = nullptr;
  if (driver.get_current_context == nullptr || driver.get_current_context(&context) != 0) return {};
  const auto driver_context = id_of_context(driver, context);
  const auto context_id = id_of_context(library, context);
  if (!driver_context || !context_id) return {};
  const auto driver_id = id_of_stream(driver, nullptr);
  const auto id = id_of_stream(library, context, nullptr);
  if (!driver_id || !id) return {};
  return *driver_context == *context_id && *driver_id == *id;
}

bool CudaNames::wants_comparison() {
  const threads::MutexLock lock(mutex_);
  return !drivers_numbers_are_cuptis_ && !(contexts_of_driver_.empty() && streams_of_driver_.empty());
}

NamedObjects CudaNames::known_names(const Library* library) {
  // The lock is not held around calls of CUDA and of the dynamic linker.
  const std::optional<bool> compared =
      library != nullptr && wants_comparison() ? compared_numbers(*library) : std::nullopt;
  const threads::MutexLock lock(mutex_);
  NamedObjects names = known_;
  if (contexts_of_driver_.empty() && streams_of_driver_.empty()) return names;
  if (!drivers_numbers_are_cuptis_) drivers_numbers_are_cuptis_ = compared;
  if (drivers_numbers_are_cuptis_.value_or(false)) {
    for (const auto& [id, name] : contexts_of_driver_) names.contexts.emplace(static_cast<uint32_t>(id), name);
    for (const auto& [place, name] : streams_of_driver_) {
      names.streams.emplace(Place(static_cast<uint32_t>(place.first), static_cast<uint32_t>(place.second)), name);
    }
  } else {
    names.unknown += contexts_of_driver_.size() + streams_of_driver_.size();
  }
  return names;
}

NamedObjects CudaNames::names(const Library* library) {
  NamedObjects names = known_names(library);
  names.cut = cut_names(names.devices) + cut_names(names.contexts) + cut_names(names.streams);
  return names;
}

}  // namespace collector::nvtx
