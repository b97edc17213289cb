// The open annotations of each thread and task, as a Python type.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

// Adds AnnotationStack, the variable `annotation_place`, and from CPython 3.14 `watch_contexts`.
void add_annotation_stack(pybind11::module_& m);

}  // namespace collector::bindings
