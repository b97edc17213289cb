// The functions of a source that records annotations in this process, for code that calls them without Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collector::bindings {

// In a capsule called kAnnotationCalls. The functions throw nothing; push returns false if there is no memory. `block`
// is the number of the block that is entered or resumed, from 1 on: an annotation of a task is pushed again each time
// that the task goes on. `is_over`: the block has ended; otherwise another task of the thread goes on.
struct AnnotationCalls {
  bool (*push)(const char* path, size_t size, uint32_t details, uint64_t block);
  void (*pop)(bool is_over);
};

inline constexpr const char* kAnnotationCalls = "collector.annotation_calls";

}  // namespace collector::bindings
