// Converts a recording's columns to wire bytes and back.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_recording(pybind11::module_& module);

}  // namespace collector::bindings
