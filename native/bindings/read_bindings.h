// The part of collector._convert that reads files of other programs.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_read(pybind11::module_& module);

}  // namespace collector::bindings
