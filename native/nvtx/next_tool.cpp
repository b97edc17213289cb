#include "nvtx/next_tool.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

#include "nvtx/handler.h"

namespace collector::nvtx {
namespace {

std::vector<Function> functions_of(const CallbackTables& tables, Module module) {
  Function** table = nullptr;
  unsigned size = 0;
  std::vector<Function> functions;
  if (tables.get_module_function_table(module, &table, &size) == 0 || table == nullptr) return functions;
  for (unsigned i = 0; i < size; ++i) functions.push_back(table[i] == nullptr ? nullptr : *table[i]);
  return functions;
}

}  // namespace

NextTool::Loaded NextTool::load() {
  Loaded found;
  const char* const path = std::getenv(kNextToolVariable);
  if (path == nullptr || *path == '\0') return found;
  void* const library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    found.trouble = why != nullptr ? why : path;
    return found;
  }
  found.initialize = reinterpret_cast<InitializeInjection>(::dlsym(library, "InitializeInjectionNvtx2"));
  if (found.initialize == nullptr) found.trouble = std::string(path) + " is no tool for NVTX";
  if (found.initialize == &InitializeInjectionNvtx2) found.initialize = nullptr;  // this library, under another path
  return found;
}

const NextTool::Loaded* NextTool::loaded() {
  thread_local bool is_loading = false;
  if (const Loaded* const known = loaded_.load(std::memory_order_acquire); known != nullptr || is_loading) return known;
  // Copies of NVTX on several threads may load it at once, and get the same tool.
  is_loading = true;
  const std::unique_ptr<bool, void (*)(bool*)> while_loading(&is_loading, [](bool* flag) { *flag = false; });
  auto found = std::make_unique<const Loaded>(load());
  const Loaded* known = nullptr;
  if (loaded_.compare_exchange_strong(known, found.get(), std::memory_order_acq_rel)) known = found.release();
  return known;
}

std::string NextTool::trouble() const {
  const Loaded* const known = loaded_.load(std::memory_order_acquire);
  return known == nullptr ? "" : known->trouble;
}

void NextTool::attach(GetExportTable get_export_table, const CallbackTables& tables) {
  const Loaded* const tool = loaded();
  if (tool == nullptr || tool->initialize == nullptr) return;
  // Before the initialisation NVTX's own functions are in the tables. They must not be called again.
  const std::vector<Function> core_before = functions_of(tables, Module::kCore);
  const std::vector<Function> core2_before = functions_of(tables, Module::kCore2);
  const std::vector<Function> cuda_before = functions_of(tables, Module::kCuda);
  const std::vector<Function> cuda_runtime_before = functions_of(tables, Module::kCudaRuntime);
  tool->initialize(get_export_table);
  const auto keep_changes = [](const std::vector<Function>& before, const std::vector<Function>& after, auto& next) {
    for (size_t i = 0; i < before.size() && i < std::size(next); ++i) {
      if (after[i] != before[i]) next[i].store(after[i], std::memory_order_relaxed);
    }
  };
  keep_changes(core_before, functions_of(tables, Module::kCore), core_);
  keep_changes(core2_before, functions_of(tables, Module::kCore2), core2_);
  keep_changes(cuda_before, functions_of(tables, Module::kCuda), cuda_);
  keep_changes(cuda_runtime_before, functions_of(tables, Module::kCudaRuntime), cuda_runtime_);
}

void NextRanges::keep(uint64_t ours, uint64_t next) {
  const threads::MutexLock lock(mutex_);
  if (ids_.size() < kMost) ids_[ours] = next;
  count_.store(ids_.size(), std::memory_order_release);
}

uint64_t NextRanges::take(uint64_t ours) {
  if (count_.load(std::memory_order_acquire) == 0) return 0;
  const threads::MutexLock lock(mutex_);
  const auto found = ids_.find(ours);
  if (found == ids_.end()) return 0;
  const uint64_t next = found->second;
  ids_.erase(found);
  count_.store(ids_.size(), std::memory_order_release);
  return next;
}

}  // namespace collector::nvtx
