// Demangling of C++ names.
#pragma once

#include <cstddef>
#include <string>

namespace collector::store {

// A mangled name of a few bytes can stand for gigabytes, because it refers to parts of itself that refer to others.
// The names of real kernels stay far below these limits.
inline constexpr size_t kMostDemangledBytes = 4096;
inline constexpr size_t kMostDemangledBytesPerByte = 64;

// The C++ name of a mangled name; the text itself if it is not mangled, or if its name would be longer than these
// limits. Throws std::bad_alloc.
std::string demangled_name(const std::string& name);

}  // namespace collector::store
