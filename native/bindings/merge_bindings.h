// The part of collector._convert that draws several steps into one file.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_merge(pybind11::module_& module);

}  // namespace collector::bindings
