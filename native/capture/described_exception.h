// What an exception is that this library threw.
//
// The libraries of a wheel have a C++ runtime each, linked statically, and each runtime knows its own exceptions alone:
// the std::bad_alloc of this library is another type than the std::bad_alloc that the extension module could catch.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace collector::capture {

struct DescribedException {
  enum class Kind : uint8_t { kOther, kNoMemory, kBadValue };
  Kind kind = Kind::kOther;
  std::string text;  // of a bad value
};

DescribedException described(const std::exception_ptr& thrown) noexcept;

}  // namespace collector::capture
