// CUPTI's clock, in nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "cupti/activity_api.h"
#include "cupti/tick_scale.h"
#include "threads/mutex.h"

namespace collector::cupti {

class Clock {
 public:
  explicit Clock(const ActivityApi& activity_api) : activity_api_(activity_api) {}

  // CUPTI's present time; no value if it cannot be read. Any thread may ask.
  std::optional<int64_t> now() const {
    uint64_t ticks = 0;
    if (activity_api_.timestamp(&ticks) != Result::kSuccess) return std::nullopt;
    const TickScale* const scale = this->scale();
    return scale == nullptr ? static_cast<int64_t>(ticks) : scale->ns(ticks);
  }

  // What the times of records are multiplied with; null: they are nanoseconds. It stays valid.
  const TickScale* scale() const { return scale_.load(std::memory_order_acquire); }

  // Finds out whether CUPTI counts nanoseconds, at the begin and the end of a session: another profiler may have
  // registered a callback since. It takes some microseconds, and 10 ms when a counter of ticks is seen for the first
  // time.
  void learn() EXCLUDES(learning_);

 private:
  std::optional<ClockReading> read() const;
  // No value if CUPTI counts nanoseconds.
  std::optional<TickScale> measured(const ClockReading& first) const;

  const ActivityApi& activity_api_;
  std::atomic<const TickScale*> scale_{nullptr};
  threads::Mutex learning_;
  std::deque<TickScale> scales_ GUARDED_BY(learning_);  // few, because one stays in use as long as it predicts the time
};

}  // namespace collector::cupti
