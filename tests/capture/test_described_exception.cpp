// Exceptions of the capture library, told for libraries that cannot catch them by type.
#include <doctest/doctest.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "capture/described_exception.h"

using collector::capture::described;
using collector::capture::DescribedException;
using Kind = DescribedException::Kind;

TEST_CASE("an exception has a kind, and a bad value a text") {
  const DescribedException bad_value = described(std::make_exception_ptr(std::invalid_argument("buffer_bytes")));
  CHECK(bad_value.kind == Kind::kBadValue);
  CHECK(bad_value.text == "buffer_bytes");
  CHECK(described(std::make_exception_ptr(std::bad_alloc())).kind == Kind::kNoMemory);
  CHECK(described(std::make_exception_ptr(std::length_error("vector"))).kind == Kind::kNoMemory);
}

TEST_CASE("exceptions of others are left to others") {
  CHECK(described(std::make_exception_ptr(std::runtime_error("theirs"))).kind == Kind::kOther);
  CHECK(described(std::make_exception_ptr(7)).kind == Kind::kOther);
}
