#include "cupti/process_use.h"

#include <pthread.h>

#include <atomic>

namespace collector::cupti {

std::atomic<bool> internal::forked{false};
std::atomic<bool> internal::out_of_use{false};

namespace {

std::atomic<bool> used{false};

// Registered when this library is loaded, before CUDA or CUPTI can be in use. The handler takes no lock and allocates
// nothing.
[[maybe_unused]] const int kRegistered = ::pthread_atfork(nullptr, nullptr, [] {
  if (!used.load(std::memory_order_relaxed)) return;
  internal::forked.store(true, std::memory_order_relaxed);
  internal::out_of_use.store(true, std::memory_order_relaxed);
});

}  // namespace

std::optional<Failure> begin_use() {
  if (forked_after_use()) {
    return Failure{FailureKind::kCuptiUnusable, "this process was forked from one that had used CUDA",
                   "Start it with the 'spawn' method instead; CUDA and CUPTI do not survive a fork"};
  }
  if (out_of_use()) return Failure{FailureKind::kCuptiUnusable, "this process is ending", ""};
  used.store(true, std::memory_order_relaxed);
  return std::nullopt;
}

void end_use() noexcept { internal::out_of_use.store(true, std::memory_order_relaxed); }

}  // namespace collector::cupti
