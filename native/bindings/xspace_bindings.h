// Python bindings of the events of an XSpace.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_xspace(pybind11::module_& module);

}  // namespace collector::bindings
