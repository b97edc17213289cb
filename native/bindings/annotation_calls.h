// The functions of a source that records annotations in this process, for code that calls them without Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::bindings {

// In a capsule called kAnnotationCalls. The functions throw nothing; push returns false if there is no memory.
struct AnnotationCalls {
  bool (*push)(const char* path, size_t size, uint32_t details);
  void (*pop)();
};

inline constexpr const char* kAnnotationCalls = "collector.annotation_calls";

}  // namespace collector::bindings
