// A description of an exception that this library threw.
//
// Each library of a wheel has its own C++ runtime, linked statically, and each runtime knows only its own exceptions:
// the std::bad_alloc of this library is not the type std::bad_alloc that the extension module could catch.
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
