// The tool that NVTX_INJECTION64_PATH named before our handler: it gets every call after our handler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "nvtx/abi.h"
#include "threads/mutex.h"

namespace collector::nvtx {

// The variable with the next tool's path. It is set by collector.nvtx.arm, also for child processes.
constexpr const char* kNextToolVariable = "COLLECTOR_NVTX_NEXT";

// The functions that the next tool wrote into the tables of a copy of NVTX; null where there is none. NVTX tells
// neither tool which copy calls, so there is one set for all of them.
class NextTool {
 public:
  // Has the next tool write its functions into a copy's tables, and remembers those of the modules that we handle.
  // Loads the tool at the first call. Thread-safe, and holds no lock meanwhile: the loading waits for the dynamic
  // linker's lock, and a thread that has that one may be inside the constructor of a library that calls NVTX.
  void attach(GetExportTable get_export_table, const CallbackTables& tables);

  template <typename Type>
  Type* core(Core id) const {
    return reinterpret_cast<Type*>(core_[static_cast<size_t>(id)].load(std::memory_order_relaxed));
  }
  template <typename Type>
  Type* core2(Core2 id) const {
    return reinterpret_cast<Type*>(core2_[static_cast<size_t>(id)].load(std::memory_order_relaxed));
  }
  template <typename Type>
  Type* cuda(Cuda id) const {
    return reinterpret_cast<Type*>(cuda_[static_cast<size_t>(id)].load(std::memory_order_relaxed));
  }
  template <typename Type>
  Type* cuda_runtime(CudaRuntime id) const {
    return reinterpret_cast<Type*>(cuda_runtime_[static_cast<size_t>(id)].load(std::memory_order_relaxed));
  }

  // Why the next tool could not be loaded; empty if it was, or if there is none.
  std::string trouble() const;

 private:
  struct Loaded {
    InitializeInjection initialize = nullptr;
    std::string trouble;
  };
  static Loaded load();
  // The tool; null: this thread is loading it, and a constructor of its libraries calls NVTX.
  const Loaded* loaded();

  std::atomic<const Loaded*> loaded_{nullptr};  // never freed
  std::atomic<Function> core_[static_cast<size_t>(Core::kCount)] = {};
  std::atomic<Function> core2_[static_cast<size_t>(Core2::kCount)] = {};
  std::atomic<Function> cuda_[static_cast<size_t>(Cuda::kCount)] = {};
  std::atomic<Function> cuda_runtime_[static_cast<size_t>(CudaRuntime::kCount)] = {};
};

// The next tool's ids of the ranges whose ids for the program are ours. Thread-safe.
class NextRanges {
 public:
  // Beyond kMost open ranges the next tool sees no end of further ones.
  void keep(uint64_t ours, uint64_t next);
  // The next tool's id of a range that ends; 0: it has none.
  uint64_t take(uint64_t ours);

  // For forks.
  threads::Mutex& mutex() { return mutex_; }

 private:
  static constexpr size_t kMost = size_t{1} << 16;

  threads::Mutex mutex_;
  std::unordered_map<uint64_t, uint64_t> ids_ GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};  // of them, for programs without a next tool
};

}  // namespace collector::nvtx
