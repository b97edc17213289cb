// Lets the heap allocations of a thread fail, as when there is no memory left.
#pragma once

#include <cstddef>

namespace collector::testing {

// Lets the `first`-th operator new of this thread throw, and all after it, until the end of a scope. 0: all succeed.
class NoMemory {
 public:
  explicit NoMemory(size_t first);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

  // Whether one has, since the last such object was made.
  static bool has_failed();
};

}  // namespace collector::testing
