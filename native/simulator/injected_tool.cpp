#include "simulator/injected_tool.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace collector::simulator {
namespace {

thread_local bool loading = false;

}  // namespace

void load_injected_tool() {
  static std::atomic<bool> is_done{false};
  const char* const path = ::secure_getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0' || is_done.exchange(true)) return;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto initialize = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  if (initialize == nullptr) return;
  loading = true;
  initialize();
  loading = false;
}

bool is_loading_tool() { return loading; }

}  // namespace collector::simulator
