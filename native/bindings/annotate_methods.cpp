// The methods of `annotate` are functions of Python, because torch.compile reads their code: it could not compile a
// block whose methods are not written in Python. Everybody else calls functions and classes through a field
// `vectorcall`, which is replaced here. The functions below do the usual cases without a frame of Python, and leave all
// others to the Python code. CPython 3.11 evaluates some calls of Python functions without that field, so that both
// must agree.
#include "bindings/annotate_methods.h"

#include <structmember.h>

#include <atomic>
#include <cstddef>
#include <utility>

#include "bindings/annotation_stack.h"
#include "bindings/free_threading.h"

namespace py = pybind11;

namespace collector::bindings {
namespace {

struct Method {
  PyObject* function = nullptr;  // owned for ever: calls may be in progress at any time
  vectorcallfunc in_python = nullptr;

  PyObject* call(PyObject* const* arguments, size_t count, PyObject* keywords) const {
    return in_python(function, arguments, count, keywords);
  }
};

PyTypeObject* annotate_type = nullptr;
Py_ssize_t name_offset = 0;
Py_ssize_t stack_offset = 0;
Py_ssize_t noted_offset = 0;
Method enter_method;
Method exit_method;

PyObject* at_failed_blocks = nullptr;       // a list of functions
SharedReference* recording = nullptr;       // to the AnnotationStack of the open session; none: nothing is recorded
std::atomic<bool> enters_in_python{false};  // each entry needs more than the stack's own `enter`

PyObject*& slot_at(PyObject* self, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + offset);
}

// What the slot holds; null: nothing.
py::object slot_of(PyObject* self, Py_ssize_t offset) {
  const ObjectLock lock(self);
  return py::reinterpret_borrow<py::object>(slot_at(self, offset));
}

void set_slot(PyObject* self, Py_ssize_t offset, PyObject* value) {
  Py_INCREF(value);
  PyObject* before = nullptr;
  {
    const ObjectLock lock(self);
    before = std::exchange(slot_at(self, offset), value);
  }
  Py_XDECREF(before);  // may run any Python code
}

bool is_usual(PyObject* const* arguments, size_t count, PyObject* keywords, Py_ssize_t expected) {
  return keywords == nullptr && PyVectorcall_NARGS(count) == expected &&
         (Py_TYPE(arguments[0]) == annotate_type || PyType_IsSubtype(Py_TYPE(arguments[0]), annotate_type) != 0);
}

// Whether annotate.__init__ would accept the name at once.
bool is_usual_name(PyObject* name) {
  return PyUnicode_CheckExact(name) && PyUnicode_GET_LENGTH(name) != 0 && PyUnicode_ReadChar(name, 0) > '0';
}

#ifdef Py_GIL_DISABLED
PyObject* blank_annotation() { return annotate_type->tp_alloc(annotate_type, 0); }
void forget_last_annotation() {}
#else
PyObject* last_annotation = nullptr;  // made by `make`, or null

// An annotation whose fields are to be set: the last one again, if nobody else refers to it any more. Most blocks make
// one, which ends with them.
PyObject* blank_annotation() {
  if (last_annotation != nullptr && Py_REFCNT(last_annotation) == 1) {
    Py_INCREF(last_annotation);
    return last_annotation;
  }
  PyObject* const made = annotate_type->tp_alloc(annotate_type, 0);
  if (made == nullptr) return nullptr;
  Py_INCREF(made);
  Py_XDECREF(std::exchange(last_annotation, made));  // may run any Python code, which may make annotations
  return made;
}

// Its fields refer to a session.
void forget_last_annotation() { Py_CLEAR(last_annotation); }
#endif

// annotate(name)
PyObject* make(PyObject* type, PyObject* const* arguments, size_t count, PyObject* keywords) {
  if (keywords != nullptr || PyVectorcall_NARGS(count) != 1 || !is_usual_name(arguments[0])) {
    const auto positional = py::reinterpret_steal<py::object>(PyTuple_New(PyVectorcall_NARGS(count)));
    const auto named = py::reinterpret_steal<py::object>(keywords == nullptr ? nullptr : PyDict_New());
    if (!positional || (keywords != nullptr && !named)) return nullptr;
    const Py_ssize_t given = PyVectorcall_NARGS(count);
    for (Py_ssize_t i = 0; i < given; ++i) {
      Py_INCREF(arguments[i]);
      PyTuple_SET_ITEM(positional.ptr(), i, arguments[i]);
    }
    for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i) {
      if (PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(keywords, i), arguments[given + i]) < 0) return nullptr;
    }
    return PyType_Type.tp_call(type, positional.ptr(), named.ptr());
  }
  PyObject* const self = blank_annotation();
  if (self == nullptr) return nullptr;
  set_slot(self, name_offset, arguments[0]);
  set_slot(self, stack_offset, Py_None);
  set_slot(self, noted_offset, Py_None);
  return self;
}

// annotate.__enter__(self), of an annotation without details.
PyObject* enter(PyObject* /*function*/, PyObject* const* arguments, size_t count, PyObject* keywords) {
  if (!is_usual(arguments, count, keywords, 1)) return enter_method.call(arguments, count, keywords);
  PyObject* const self = arguments[0];
  // The stack and the name are held during the call, which may run any Python code.
  const py::object stack = *recording ? recording->get() : py::object();
  if (stack) {
    const py::object name = slot_of(self, name_offset);
    if (enters_in_python.load(std::memory_order_relaxed) || !slot_of(self, noted_offset).is_none() || !name ||
        !PyUnicode_Check(name.ptr())) {
      return enter_method.call(arguments, count, keywords);
    }
    set_slot(self, stack_offset, stack.ptr());
    if (!enter_annotation(stack.ptr(), self, name.ptr(), PyEval_GetFrame())) {
      // Nobody leaves an annotation whose entry a Ctrl-C interrupted.
      PyObject* type = nullptr;
      PyObject* value = nullptr;
      PyObject* traceback = nullptr;
      PyErr_Fetch(&type, &value, &traceback);
      if (!leave_annotation(stack.ptr(), self)) PyErr_Clear();
      PyErr_Restore(type, value, traceback);
      return nullptr;
    }
  }
  Py_INCREF(self);
  return self;
}

// Calls the functions of at_failed_blocks with the frame of the block; false: one has failed.
bool end_inside_failed_block() {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(at_failed_blocks); ++i) {
    const auto end_inside = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(at_failed_blocks, i));
    PyFrameObject* const block = PyEval_GetFrame();
    if (block == nullptr) return true;  // no code of Python called
    const auto done =
        py::reinterpret_steal<py::object>(PyObject_CallOneArg(end_inside.ptr(), reinterpret_cast<PyObject*>(block)));
    if (!done) return false;
  }
  return true;
}

// Leaves the annotation in the stack of its entry.
bool leave_annotation_in(PyObject* stack, PyObject* self) {
  if (!leave_annotation(stack, self)) return false;
  // Another thread may have entered the same object in an earlier session, and have noted that one after this thread.
  const py::object now = *recording ? recording->get() : py::object();
  return !now || now.ptr() == stack || leave_annotation(now.ptr(), self);
}

// annotate.__exit__(self, type, value, traceback). At the limit of recursion, where no frame of Python can be made,
// this leaves the annotation that `enter` entered.
PyObject* exit(PyObject* /*function*/, PyObject* const* arguments, size_t count, PyObject* keywords) {
  if (!is_usual(arguments, count, keywords, 4)) return exit_method.call(arguments, count, keywords);
  const py::object stack = slot_of(arguments[0], stack_offset);
  if (!stack || (!stack.is_none() && !is_annotation_stack(stack.ptr()))) {
    return exit_method.call(arguments, count, keywords);
  }
  const bool done = arguments[1] == Py_None || end_inside_failed_block();
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  if (!done) PyErr_Fetch(&type, &value, &traceback);
  const bool is_left = stack.is_none() || leave_annotation_in(stack.ptr(), arguments[0]);
  if (!done) PyErr_Restore(type, value, traceback);
  if (!done || !is_left) return nullptr;
  Py_RETURN_NONE;
}

Py_ssize_t offset_of(const py::object& type, const char* name) {
  const py::object member = type.attr(name);
  if (Py_TYPE(member.ptr()) != &PyMemberDescr_Type) throw py::type_error(std::string(name) + " is not a slot");
  return reinterpret_cast<PyMemberDescrObject*>(member.ptr())->d_member->offset;
}

void replace(const py::object& type, const char* name, vectorcallfunc ours, Method& method) {
  PyObject* const function = type.attr(name).ptr();
  if (!PyFunction_Check(function)) throw py::type_error(std::string(name) + " is not a function");
  auto* const object = reinterpret_cast<PyFunctionObject*>(function);
  Py_INCREF(function);
  method.function = function;
  method.in_python = object->vectorcall;
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(object, ours);
#else
  object->vectorcall = ours;
#endif
}

void hasten_annotate(const py::object& type, const py::list& functions) {
  if (annotate_type != nullptr) return;
  at_failed_blocks = py::object(functions).release().ptr();
  name_offset = offset_of(type, "name");
  stack_offset = offset_of(type, "_stack");
  noted_offset = offset_of(type, "_noted");
  annotate_type = reinterpret_cast<PyTypeObject*>(py::object(type).release().ptr());
  annotate_type->tp_vectorcall = make;  // only of the class itself: types do not inherit it
  replace(type, "__enter__", enter, enter_method);
  replace(type, "__exit__", exit, exit_method);
}

void annotate_in(const py::object& stack, bool in_python) {
  if (!stack.is_none() && !is_annotation_stack(stack.ptr())) throw py::type_error("no AnnotationStack");
  enters_in_python.store(in_python, std::memory_order_relaxed);
  recording->set(stack);
  forget_last_annotation();
}

}  // namespace

void add_annotate_methods(py::module_& m) {
  recording = new SharedReference();
  m.def("hasten_annotate", &hasten_annotate, py::arg("annotate"), py::arg("at_failed_blocks"),
        "Lets the methods of the class `annotate` do the usual cases without frames of Python. Once for a process.");
  m.def("annotate_in", &annotate_in, py::arg("stack"), py::arg("in_python"),
        "Enters further annotations in a stack; None: in none. `in_python`: by annotate's own code, if in one.");
}

}  // namespace collector::bindings
