#include "cupti/fork.h"

#include <pthread.h>

#include <atomic>

namespace collector::cupti {

std::atomic<bool> internal::forked{false};

namespace {

std::atomic<bool> used{false};

// Registered when this library is loaded, before CUDA or CUPTI can be in use. The handler takes no lock and allocates
// nothing.
[[maybe_unused]] const int kRegistered = ::pthread_atfork(nullptr, nullptr, [] {
  if (used.load(std::memory_order_relaxed)) internal::forked.store(true, std::memory_order_relaxed);
});

}  // namespace

std::optional<Failure> begin_use() {
  if (forked_after_use()) {
    return Failure{FailureKind::kCuptiUnusable, "this process was forked from one that had used CUDA",
                   "Start it with the 'spawn' method instead; CUDA and CUPTI do not survive a fork"};
  }
  used.store(true, std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace collector::cupti
