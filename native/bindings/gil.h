// Locking of the GIL in threads that may outlive the interpreter.
//
// A daemon thread may run native code when the interpreter ends. Before Python 3.14, taking the lock then ends the
// thread with pthread_exit, which unwinds its C++ frames, meets a destructor, and aborts the whole process; pybind11's
// guards do not prevent that. With these classes the thread waits for the end of the process instead, as in 3.14.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace collector::bindings {

// Our threads are never cancelled, so pause does not throw.
[[noreturn]] inline void wait_for_exit() noexcept {  // NOLINT(bugprone-exception-escape)
  for (;;) ::pause();
}

// The result of `call`. If the interpreter ends the thread inside it, the thread waits for the end of the process.
// `call` may take the lock or run Python code, throws nothing, and owns nothing in C++.
template <typename Call>
auto or_wait_for_exit(Call call) {
  try {
    return call();
  } catch (...) {
    // Only pthread_exit unwinds through C. Its exception has a type, abi::__forced_unwind, but no object to catch by
    // name.
    wait_for_exit();
  }
}

// Releases the lock for a scope.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    or_wait_for_exit([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the lock for a scope; the thread may already hold it.
class GilAcquire {
 public:
  GilAcquire() : state_(or_wait_for_exit([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() {  // releasing it may end the thread's Python state, which may run Python code
    or_wait_for_exit([this] { PyGILState_Release(state_); });
  }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace collector::bindings
