#include "nvtx/next_tool.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iterator>
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

void NextTool::load() {
  if (is_loaded_) return;
  is_loaded_ = true;
  const char* const path = std::getenv(kNextToolVariable);
  if (path == nullptr || *path == '\0') return;
  void* const library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    trouble_ = why != nullptr ? why : path;
    return;
  }
  initialize_ = reinterpret_cast<InitializeInjection>(::dlsym(library, "InitializeInjectionNvtx2"));
  if (initialize_ == nullptr) trouble_ = std::string(path) + " is no tool for NVTX";
  if (initialize_ == &InitializeInjectionNvtx2) initialize_ = nullptr;  // this library, under another path
}

void NextTool::attach(GetExportTable get_export_table, const CallbackTables& tables) {
  load();
  if (initialize_ == nullptr) return;
  // Before the initialisation NVTX's own functions are in the tables. They must not be called again.
  const std::vector<Function> core_before = functions_of(tables, Module::kCore);
  const std::vector<Function> core2_before = functions_of(tables, Module::kCore2);
  const std::vector<Function> cuda_before = functions_of(tables, Module::kCuda);
  const std::vector<Function> cuda_runtime_before = functions_of(tables, Module::kCudaRuntime);
  initialize_(get_export_table);
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

}  // namespace collector::nvtx
