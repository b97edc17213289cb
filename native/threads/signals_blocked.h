// Keeps the program's signal handlers away from the threads of the collector.
#pragma once

#include <pthread.h>

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

// Calls `work`, and keeps from the program the signal that a failing call in it sends to this thread, as SIGPIPE.
template <typename Work>
void without_signal(int number, Work work) {
  sigset_t signals;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, number);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  work();
  const timespec at_once{};
  if (::sigismember(&pending, number) == 0) ::sigtimedwait(&signals, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace collector::threads
