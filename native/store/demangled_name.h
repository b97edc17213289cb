// Demangling of C++ names.
#pragma once

#include <string>

namespace collector::store {

// The C++ name of a mangled name, or the text itself if it is not mangled.
std::string demangled_name(const std::string& name);

}  // namespace collector::store
