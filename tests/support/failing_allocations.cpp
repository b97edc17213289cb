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

void* allocate_or_null(size_t bytes) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// All of them but the aligned ones: a sanitizer's would not be freed by these.
void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace collector::testing {

NoMemory::NoMemory(size_t first) {
  until_failure = first;
  ::has_failed = false;
}
NoMemory::~NoMemory() { until_failure = 0; }
bool NoMemory::has_failed() { return ::has_failed; }

}  // namespace collector::testing
