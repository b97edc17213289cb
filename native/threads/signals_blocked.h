// Keeps the program's signal handlers away from the threads of the collector.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

namespace collector::threads {

// Blocks signals in this thread and in the threads that it starts.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Keeps from the program one signal that failing calls send to this thread, as SIGPIPE.
class SignalKept {
 public:
  explicit SignalKept(int number) {
    sigset_t pending;
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, number);
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, number) != 0;
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~SignalKept() {
    const timespec at_once{};
    // Not sigtimedwait: a thread may be cancelled in it, which no destructor survives.
    if (!was_pending_) ::syscall(SYS_rt_sigtimedwait, &signals_, nullptr, &at_once, _NSIG / 8);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalKept(const SignalKept&) = delete;
  SignalKept& operator=(const SignalKept&) = delete;

 private:
  sigset_t signals_;
  sigset_t before_;
  bool was_pending_;
};

// Calls `work`, which may throw, and keeps from the program the signal that a failing call in it sends to this thread.
template <typename Work>
void without_signal(int number, Work work) {
  const SignalKept kept(number);
  work();
}

}  // namespace collector::threads
