// The simulated machine's clock, in nanoseconds. It advances only by the duration of simulated work, so that the same
// calls give the same times. Real time is added on request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace collector::simulator {

class Clock {
 public:
  Clock(int64_t start_ns, bool follow_real_time)
      : virtual_ns_(start_ns), follow_real_time_(follow_real_time), opened_(std::chrono::steady_clock::now()) {}

  int64_t now() const { return virtual_ns_.load(std::memory_order_acquire) + real_ns(); }

  // Spends `ns` and returns the time before.
  int64_t take(int64_t ns) { return virtual_ns_.fetch_add(ns, std::memory_order_acq_rel) + real_ns(); }

  // Advances to `time_ns`, unless that time has already passed.
  void advance_to(int64_t time_ns) {
    const int64_t target = time_ns - real_ns();
    int64_t seen = virtual_ns_.load(std::memory_order_relaxed);
    while (seen < target && !virtual_ns_.compare_exchange_weak(seen, target, std::memory_order_acq_rel)) {
    }
  }

 private:
  int64_t real_ns() const {
    if (!follow_real_time_) return 0;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - opened_).count();
  }

  std::atomic<int64_t> virtual_ns_;
  const bool follow_real_time_;
  const std::chrono::steady_clock::time_point opened_;
};

}  // namespace collector::simulator
