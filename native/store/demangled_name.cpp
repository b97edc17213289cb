#include "store/demangled_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace collector::store {

std::string demangled_name(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text ? text.get() : name;
}

}  // namespace collector::store
