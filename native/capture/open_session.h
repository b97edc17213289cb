// The open session, as every thread may ask for it without a lock: whether there is one, its number and its library.
#pragma once

#include <atomic>
#include <cstdint>

#include "cupti/library.h"
#include "cupti/process_use.h"

namespace collector::capture {

class OpenSession {
 public:
  // Whether a session is open that may still use CUDA and CUPTI.
  bool active() const { return is_open() && !cupti::out_of_use(); }
  // The same, also while the process ends and in a forked child, which may use neither.
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }

  // The number of the open or the last session.
  uint32_t number() const { return number_.load(std::memory_order_relaxed); }
  // Its library. There must have been a session.
  const cupti::Library& library() const { return *library_.load(std::memory_order_acquire); }
  // The same; null before the first session.
  const cupti::Library* known_library() const { return library_.load(std::memory_order_acquire); }
  // The present time on CUPTI's clock; 0: it cannot be read.
  int64_t cupti_now() const { return library().clock().now().value_or(0); }

  // --- Called by the session, by one thread at a time. ---

  // A session begins with its library and the next number, and is open later.
  void use(const cupti::Library& library) { library_.store(&library, std::memory_order_release); }
  void count() { number_.store(number() % kMostSessions + 1, std::memory_order_relaxed); }
  void open() { is_open_.store(true, std::memory_order_release); }
  void close() { is_open_.store(false, std::memory_order_release); }

 private:
  static constexpr uint32_t kMostSessions = 0x7fff'ffff;  // the numbers wrap around after this many

  std::atomic<bool> is_open_{false};
  std::atomic<uint32_t> number_{0};
  std::atomic<const cupti::Library*> library_{nullptr};
};

}  // namespace collector::capture
