// The part of collector._convert that puts nodes together.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::convert {

void BindNodes(pybind11::module_& module);

}  // namespace collector::convert
