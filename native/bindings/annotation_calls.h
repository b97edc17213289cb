// The functions of a source that records annotations in this process, for code that calls them without Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::bindings {

// In a capsule called kAnnotationCalls. The functions may throw std::bad_alloc.
struct AnnotationCalls {
  void (*push)(const char* path, size_t size, uint32_t details);
  void (*pop)();
};

inline constexpr const char* kAnnotationCalls = "collector.annotation_calls";

}  // namespace collector::bindings
