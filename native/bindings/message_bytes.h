// A message that Python gives as contiguous bytes.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

namespace collector::bindings {

// Keeps the caller's bytes alive while they are read without the GIL.
class MessageBytes {
 public:
  // Throws pybind11::value_error if the object is not contiguous bytes.
  explicit MessageBytes(const pybind11::buffer& object) : info_(object.request()) {
    if (info_.itemsize != 1 || info_.ndim != 1 || (info_.size > 0 && info_.strides[0] != 1)) {
      throw pybind11::value_error("the message must be given as contiguous bytes");
    }
  }

  std::string_view view() const {
    return info_.size == 0 ? std::string_view("", 0)
                           : std::string_view(static_cast<const char*>(info_.ptr), static_cast<size_t>(info_.size));
  }

 private:
  pybind11::buffer_info info_;
};

}  // namespace collector::bindings
