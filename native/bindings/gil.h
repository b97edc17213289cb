// The interpreter's lock, for threads that may outlive the interpreter.
//
// A daemon thread may be in native code when the interpreter ends. Before Python 3.14, taking the lock then ends the
// thread with pthread_exit, which unwinds its C++ frames, meets a destructor, and aborts the whole process; pybind11's
// guards do not prevent that. With what is here the thread waits for the process to end instead, as it does in 3.14.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace collector {

// Nobody cancels a thread of ours, so that pause does not throw.
[[noreturn]] inline void wait_for_exit() noexcept {  // NOLINT(bugprone-exception-escape)
  for (;;) ::pause();
}

// What `call` returns. Where the interpreter ends the thread in it, the thread waits for the end of the process.
// `call` may take the lock or run Python code, throws nothing, and owns nothing in C++.
template <typename Call>
auto or_wait_for_exit(Call call) {
  try {
    return call();
  } catch (...) {
    // Only pthread_exit unwinds through C. What it throws has a type, abi::__forced_unwind, but no object to name.
    wait_for_exit();
  }
}

// Holds the lock released for a scope.
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

// Takes the lock for a scope, in a thread that may have it already.
class GilAcquire {
 public:
  GilAcquire() : state_(or_wait_for_exit([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() {  // releasing it may end the thread's Python state, and with that run Python code
    or_wait_for_exit([this] { PyGILState_Release(state_); });
  }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace collector
