// Counts heap calls inside marked windows of a thread. The library is preloaded (LD_PRELOAD) into a test or benchmark;
// the caller of the watched code brackets it with allocation_counter_enter() and allocation_counter_leave().
//
// The simulator brackets every buffer callback, so that "our callbacks allocate nothing" is measured and not only
// claimed. Linux with glibc only: the real allocator is called by glibc's own __libc_ names, because a dlsym look-up
// would itself allocate.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* pointer, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* pointer);
}

namespace {

// Initial-exec TLS: with the default model, a thread's first access may allocate, inside the very call that is counted.
__attribute__((tls_model("initial-exec"))) thread_local int window_depth = 0;

std::atomic<uint64_t> windows{0};
std::atomic<uint64_t> allocations{0};
std::atomic<uint64_t> allocated_bytes{0};
std::atomic<uint64_t> releases{0};

void allocated(size_t bytes) {
  if (window_depth == 0) return;
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void released(const void* pointer) {
  if (window_depth != 0 && pointer != nullptr) releases.fetch_add(1, std::memory_order_relaxed);
}

bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace

EXPORT void allocation_counter_enter() {
  ++window_depth;
  windows.fetch_add(1, std::memory_order_relaxed);
}
EXPORT void allocation_counter_leave() { --window_depth; }
EXPORT uint64_t allocation_counter_windows() { return windows.load(); }
EXPORT uint64_t allocation_counter_allocations() { return allocations.load(); }
EXPORT uint64_t allocation_counter_bytes() { return allocated_bytes.load(); }
EXPORT uint64_t allocation_counter_releases() { return releases.load(); }

EXPORT void* malloc(size_t bytes) {
  allocated(bytes);
  return __libc_malloc(bytes);
}

EXPORT void* calloc(size_t count, size_t bytes) {
  allocated(count * bytes);
  return __libc_calloc(count, bytes);
}

EXPORT void* realloc(void* pointer, size_t bytes) {
  allocated(bytes);
  return __libc_realloc(pointer, bytes);
}

EXPORT void* memalign(size_t alignment, size_t bytes) {
  allocated(bytes);
  return __libc_memalign(alignment, bytes);
}

EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  allocated(bytes);
  return __libc_memalign(alignment, bytes);
}

EXPORT int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || !is_power_of_two(alignment)) return EINVAL;
  allocated(bytes);
  void* pointer = __libc_memalign(alignment, bytes);
  if (pointer == nullptr) return ENOMEM;
  *out = pointer;
  return 0;
}

EXPORT void free(void* pointer) {
  released(pointer);
  __libc_free(pointer);
}

// A pool that grows by mapping memory allocates too. (The allocator's own mappings do not call this function.)
EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  allocated(bytes);
  // The raw system call returns -1 with errno set on failure, which equals MAP_FAILED.
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

EXPORT int munmap(void* address, size_t bytes) {
  released(address);
  return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
