// The number by which the system knows a thread.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace collector::threads {

// The system is asked once in the life of a thread: a child that is forked after the call would get its parent's
// number. Only sessions call this, and such a child has none.
inline uint32_t this_thread_id() noexcept {
  thread_local const auto id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

}  // namespace collector::threads
