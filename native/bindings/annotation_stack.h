// The open annotations of each thread and task, as a Python type.
#pragma once

#include <pybind11/pybind11.h>

namespace collector::bindings {

// Adds AnnotationStack, the variable `annotation_place`, and from CPython 3.14 `watch_contexts`.
void add_annotation_stack(pybind11::module_& m);

bool is_annotation_stack(PyObject* object);

// The methods `enter`, without details, and `leave` of an AnnotationStack. `caller`: the frame that enters the block,
// or null. False: a Python exception is set.
bool enter_annotation(PyObject* stack, PyObject* owner, PyObject* name, PyFrameObject* caller);
bool leave_annotation(PyObject* stack, PyObject* owner);

}  // namespace collector::bindings
