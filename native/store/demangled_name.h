// C++ names as people read them.
#pragma once

#include <string>

namespace collector::store {

// The C++ name behind a mangled one; the text itself when it is not mangled.
std::string demangled_name(const std::string& name);

}  // namespace collector::store
