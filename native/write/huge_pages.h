// Large pages for memory that is written once.
#pragma once

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstddef>
#include <cstdint>

namespace collector::write {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Large memory is written once from front to back: with small pages, page faults would cost more than the writing. This
// is only a hint, so its failure does not matter. It is given for all pages of the memory: a large block can be moved
// without a copy only as long as all its pages are of one kind.
#ifdef __linux__
inline void ask_for_huge_pages(const char* begin, size_t num_bytes) {
  if (num_bytes < kHugePageBytes) return;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = address / page_bytes * page_bytes;
  const uintptr_t last = (address + num_bytes + page_bytes - 1) / page_bytes * page_bytes;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}
#else
inline void ask_for_huge_pages(const char*, size_t) {}  // macOS and Windows have no such hint
#endif

}  // namespace collector::write
