// A signal that a failing call sends is kept from the program, and the thread's mask is as before afterwards.
#include <doctest/doctest.h>
#include <pthread.h>

#include <csignal>
#include <new>

#include "threads/signals_blocked.h"

using collector::threads::without_signal;

namespace {

bool is_blocked(int number) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, number) == 1;
}

bool is_pending(int number) {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, number) == 1;
}

}  // namespace

TEST_CASE("a signal that is sent in the work is kept from the program") {
  without_signal(SIGXFSZ, [] { ::pthread_kill(::pthread_self(), SIGXFSZ); });  // else it ends this program
  CHECK_FALSE(is_pending(SIGXFSZ));
  CHECK_FALSE(is_blocked(SIGXFSZ));
}

TEST_CASE("a signal is kept from the program, and blocked no longer, if the work throws") {
  const auto fail = [] {
    ::pthread_kill(::pthread_self(), SIGXFSZ);
    throw std::bad_alloc();
  };
  CHECK_THROWS_AS(without_signal(SIGXFSZ, fail), std::bad_alloc);
  const bool stays_pending = is_pending(SIGXFSZ);
  CHECK_FALSE(stays_pending);
  CHECK_FALSE(is_blocked(SIGXFSZ));
}
