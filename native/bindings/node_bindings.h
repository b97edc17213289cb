// The part of collector._convert that reads the names and labels of nodes, and counts messages.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

void bind_nodes(pybind11::module_& module);

}  // namespace collector::bindings
