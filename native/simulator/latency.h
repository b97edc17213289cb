// Durations of client callbacks: a log-linear histogram of fixed size, with a relative error of at most 1/32.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "simulator/control.h"

namespace collector::simulator {

class Latency {
 public:
  void add(uint64_t ns) {
    counts_[bucket(ns)].fetch_add(1, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
    total_.fetch_add(ns, std::memory_order_relaxed);
    uint64_t seen = max_.load(std::memory_order_relaxed);
    while (seen < ns && !max_.compare_exchange_weak(seen, ns, std::memory_order_relaxed)) {
    }
  }

  SimLatency summary() const {
    return {count_.load(), total_.load(), max_.load(), quantile(0.5), quantile(0.99), quantile(0.9999)};
  }

 private:
  static constexpr unsigned kSteps = 32;

  static size_t bucket(uint64_t ns) {
    unsigned octave = 0;
    while ((ns >> octave) >= 2 * kSteps) ++octave;
    return octave * kSteps + static_cast<size_t>(ns >> octave);
  }

  // The largest value of a bucket.
  static uint64_t upper(size_t index) {
    const uint64_t octave = index < 2 * kSteps ? 0 : index / kSteps - 1;
    return ((index - octave * kSteps + 1) << octave) - 1;
  }

  uint64_t quantile(double share) const {
    const uint64_t total = count_.load();
    const auto rank = static_cast<uint64_t>(share * static_cast<double>(total));
    uint64_t passed = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      passed += counts_[i].load(std::memory_order_relaxed);
      if (passed > rank) return upper(i) < max_.load() ? upper(i) : max_.load();
    }
    return max_.load();
  }

  std::array<std::atomic<uint64_t>, 61 * kSteps> counts_{};
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> max_{0};
};

}  // namespace collector::simulator
