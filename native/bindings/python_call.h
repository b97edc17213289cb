// Calls Python functions from code that otherwise runs without the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include "bindings/gil.h"

namespace collector::bindings {

// Returns the answer of a function. Needs the GIL; throws pybind11::error_already_set if the function raises.
template <typename... Arguments>
pybind11::object call_python(const pybind11::handle& function, const Arguments&... arguments) {
  const pybind11::tuple given = pybind11::make_tuple(arguments...);
  PyObject* const answer = or_wait_for_exit([&] { return PyObject_CallObject(function.ptr(), given.ptr()); });
  if (answer == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(answer);
}

}  // namespace collector::bindings
