// Makes chosen heap allocations of the collector's threads fail. The library is preloaded (LD_PRELOAD) into a test,
// which calls allocation_failer_arm(n): from then on the n-th operator new of the threads named "collector" throws
// std::bad_alloc. After allocation_failer_arm_from(n) all later ones fail, too, as when there is no memory left; after
// allocation_failer_choose_this_thread() those of the calling thread are meant. Allocations inside the simulator belong
// to CUPTI and are not counted.
#include <dlfcn.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<bool> armed{false};
std::atomic<int64_t> seen{0};
std::atomic<int64_t> failing{0};
std::atomic<bool> all_later{false};
std::atomic<bool> has_chosen{false};
thread_local bool is_chosen = false;
std::atomic<uint64_t> failed{0};
std::atomic<uintptr_t> simulator_begin{0};
std::atomic<uintptr_t> simulator_end{0};

bool is_meant() {
  if (has_chosen.load()) return is_chosen;
  if (syscall(SYS_gettid) == getpid()) return false;
  char name[16] = "";
  return prctl(PR_GET_NAME, name) == 0 && std::strcmp(name, "collector") == 0;
}

int find_simulator(dl_phdr_info* info, size_t, void*) {
  if (std::strstr(info->dlpi_name, "collector_simulator") == nullptr) return 0;
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    begin = from < begin ? from : begin;
    end = from + info->dlpi_phdr[i].p_memsz > end ? from + info->dlpi_phdr[i].p_memsz : end;
  }
  simulator_begin = begin;
  simulator_end = end;
  return 1;
}

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* found) {
  const uintptr_t address = _Unwind_GetIP(context);
  if (address < simulator_begin || address >= simulator_end) return _URC_NO_REASON;
  *static_cast<bool*>(found) = true;
  return _URC_END_OF_STACK;
}

bool is_in_simulator() {
  bool found = false;
  _Unwind_Backtrace(look_at_frame, &found);
  return found;
}

void* allocate(size_t bytes) {
  if (armed.load() && is_meant() && !is_in_simulator()) {
    const int64_t number = ++seen;
    const int64_t first = failing.load();
    if (number == first || (all_later.load() && first > 0 && number > first)) {
      ++failed;
      throw std::bad_alloc();
    }
  }
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace {

void arm(int64_t n, bool with_later) {
  dl_iterate_phdr(find_simulator, nullptr);
  seen = 0;
  failed = 0;
  failing = n;
  all_later = with_later;
  armed = true;
}

}  // namespace

// The `n`-th allocation fails. With 0 none fails, and all are counted.
EXPORT void allocation_failer_arm(int64_t n) { arm(n, false); }
// The same, and all after it.
EXPORT void allocation_failer_arm_from(int64_t n) { arm(n, true); }
// For the rest of the process, and of children that this thread forks.
EXPORT void allocation_failer_choose_this_thread() {
  is_chosen = true;
  has_chosen = true;
}
EXPORT void allocation_failer_disarm() { armed = false; }
EXPORT int64_t allocation_failer_seen() { return seen.load(); }
EXPORT uint64_t allocation_failer_failed() { return failed.load(); }

__attribute__((visibility("default"))) void* operator new(size_t bytes) { return allocate(bytes); }
__attribute__((visibility("default"))) void* operator new[](size_t bytes) { return allocate(bytes); }
__attribute__((visibility("default"))) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((visibility("default"))) void operator delete[](void* memory) noexcept { std::free(memory); }
__attribute__((visibility("default"))) void operator delete(void* memory, size_t) noexcept { std::free(memory); }
__attribute__((visibility("default"))) void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
