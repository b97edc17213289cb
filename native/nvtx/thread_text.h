// A text of each thread, which keeps its memory from one call to the next.
#pragma once

#include <string>

namespace collector::nvtx {

// For thread_local variables.
class ThreadText {
 public:
  ThreadText() = default;
  ThreadText(const ThreadText&) = delete;
  ThreadText& operator=(const ThreadText&) = delete;
  ~ThreadText() { are_gone = true; }

  // Whether the texts of this thread have been destroyed: exit handlers that run later may still push ranges.
  static bool are_all_gone() noexcept { return are_gone; }

  std::string text;

 private:
  inline static thread_local bool are_gone = false;
};

}  // namespace collector::nvtx
