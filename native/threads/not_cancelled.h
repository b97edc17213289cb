// Keeps pthread_cancel away from a thread that is inside the collector.
//
// A cancelled thread is unwound at its next call that may block. That is an exception of the C library, which nobody
// may stop: a function that is noexcept, or catches everything and goes on, ends the process ("exception not
// rethrown"). What the program's threads call of ours is both, because nothing of ours may throw into them.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

namespace collector::threads {

// Puts off the cancellation of this thread to the end of a scope, or rather to the thread's next call after it that may
// block.
class NotCancelled {
 public:
  NotCancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() {  // NOLINT(bugprone-exception-escape): no point of cancellation
    int disabled = 0;
    ::pthread_setcancelstate(before_, &disabled);
  }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Sleeps, and is no point of cancellation: nanosleep of the C library is one, the system call is not. A signal ends it
// early.
inline void sleep_uncancelled(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec time{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  static_cast<void>(::syscall(SYS_nanosleep, &time, nullptr));
}

}  // namespace collector::threads
