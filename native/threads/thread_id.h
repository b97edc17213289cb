// The number by which the system knows a thread.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace collector::threads {

// The system is asked once in the life of a thread.
inline uint32_t this_thread_id() noexcept {
  thread_local const auto id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

}  // namespace collector::threads
