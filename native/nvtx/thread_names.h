// The names that a program gives its threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "threads/mutex.h"

namespace collector::nvtx {

// Thread-safe.
class ThreadNames {
 public:
  struct Known {
    std::map<uint32_t, std::string> names;
    uint64_t dropped = 0;  // names that were too many to be kept
    uint64_t cut = 0;      // names of which the beginning was kept
  };

  void name(uint32_t thread_id, std::string_view name);

  // Without names that are empty, and those of threads that have ended or are of other processes.
  Known of_living_threads();

  // For forks.
  threads::Mutex& mutex() { return mutex_; }

 private:
  static constexpr size_t kMostNames = 4096;
  static constexpr uint64_t kDropsBetweenRemovals = 1024;

  // Removes the names of threads that have ended. A program with too many living threads pays for that now and then
  // only.
  void make_room() REQUIRES(mutex_);

  threads::Mutex mutex_;
  Known known_ GUARDED_BY(mutex_);
};

}  // namespace collector::nvtx
