// Text for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

namespace collector::bindings {

// A str; bytes that are not UTF-8 become U+FFFD.
inline pybind11::str shown_text(std::string_view text) {
  PyObject* const shown = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (shown == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(shown);
}

}  // namespace collector::bindings
