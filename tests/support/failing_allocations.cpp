#include "failing_allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local size_t until_failure = 0;  // 0: none fails
thread_local bool has_failed = false;

void* allocate(size_t bytes) {
  if (until_failure == 1) {
    has_failed = true;
    throw std::bad_alloc();
  }
  if (until_failure > 1) --until_failure;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace collector::testing {

NoMemory::NoMemory(size_t first) {
  until_failure = first;
  ::has_failed = false;
}
NoMemory::~NoMemory() { until_failure = 0; }
bool NoMemory::has_failed() { return ::has_failed; }

}  // namespace collector::testing
