// The part of collector._convert that computes with intervals of time.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_analysis(pybind11::module_& module);

}  // namespace collector::bindings
