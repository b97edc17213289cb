// The methods of `annotate` in C++.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

// Adds `hasten_annotate` and `annotate_in`.
void add_annotate_methods(pybind11::module_& m);

}  // namespace collector::bindings
