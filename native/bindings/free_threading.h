// Objects that several threads use at once in a Python without the GIL. With the GIL, all this costs nothing.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <utility>

namespace collector::bindings {

// Locks an object for a scope, as Python's own accesses to its slots do. The thread may run other code in between when
// it waits: the scope must not rely on what it read before.
class ObjectLock {
 public:
#ifdef Py_GIL_DISABLED
  explicit ObjectLock(PyObject* object) { PyCriticalSection_Begin(&section_, object); }
  ~ObjectLock() { PyCriticalSection_End(&section_); }
#else
  explicit ObjectLock(PyObject* /*object*/) {}
  ~ObjectLock() = default;
#endif
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

#ifdef Py_GIL_DISABLED
 private:
  PyCriticalSection section_;
#endif
};

// A reference that one thread may replace while others take it. Takes no lock of its own: a forked child would wait for
// ever for one that another thread of its parent held. Never destroyed, as threads may use it until the process ends.
class SharedReference {
 public:
#ifdef Py_GIL_DISABLED
  SharedReference() : holder_(PyDict_New()) {
    if (holder_ == nullptr) throw pybind11::error_already_set();
  }
#else
  SharedReference() = default;
#endif
  SharedReference(const SharedReference&) = delete;
  SharedReference& operator=(const SharedReference&) = delete;

  // Whether there is an object at this moment.
  explicit operator bool() const { return is_set_.load(std::memory_order_relaxed); }

  // The object; null: there is none.
  pybind11::object get() const {
    PyObject* object = nullptr;
#ifdef Py_GIL_DISABLED
    // A dictionary hands out references without a lock, whatever other threads do with it.
    if (PyDict_GetItemRef(holder_, Py_None, &object) < 0) throw pybind11::error_already_set();
#else
    object = object_;
    Py_XINCREF(object);
#endif
    return pybind11::reinterpret_steal<pybind11::object>(object);
  }

  // None and null: no object from now on.
  void set(const pybind11::object& object) {
    const bool is_set = object && !object.is_none();
#ifdef Py_GIL_DISABLED
    if (is_set && PyDict_SetItem(holder_, Py_None, object.ptr()) < 0) throw pybind11::error_already_set();
    is_set_.store(is_set, std::memory_order_relaxed);
    if (!is_set) PyDict_Clear(holder_);
#else
    PyObject* const now = is_set ? object.ptr() : nullptr;
    Py_XINCREF(now);
    PyObject* const before = std::exchange(object_, now);
    is_set_.store(is_set, std::memory_order_relaxed);
    Py_XDECREF(before);  // may run any Python code
#endif
  }

 private:
#ifdef Py_GIL_DISABLED
  PyObject* const holder_;  // a dictionary with the object as its only value
#else
  PyObject* object_ = nullptr;  // owned
#endif
  std::atomic<bool> is_set_{false};
};

}  // namespace collector::bindings
