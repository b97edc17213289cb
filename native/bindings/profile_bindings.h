// The part of collector._convert that the profiler uses.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_profile(pybind11::module_& module);

}  // namespace collector::bindings
