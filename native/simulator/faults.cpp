#include "simulator/faults.h"

#include <cstdio>
#include <cstdlib>

#include "simulator/misuse.h"

namespace collector::simulator {

bool Faults::arm(std::string_view name, int64_t count, int64_t skip, int64_t value, std::string_view target) {
  for (size_t i = 0; i < kFaultCount; ++i) {
    if (name != kFaults[i].name) continue;
    const threads::MutexLock lock(mutex_);
    armed_.push_back({static_cast<Fault>(i), count, skip, value, std::string(target)});
    armed_counts_[i].fetch_add(1, std::memory_order_release);
    armed_total_.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

void Faults::clear() {
  const threads::MutexLock lock(mutex_);
  armed_.clear();
  for (auto& count : armed_counts_) count.store(0, std::memory_order_release);
  armed_total_.store(0, std::memory_order_release);
}

bool Faults::strike(Fault fault, int64_t* value, std::string_view target, std::string* armed_target) {
  const auto index = static_cast<size_t>(fault);
  const threads::MutexLock lock(mutex_);
  for (auto armed = armed_.begin(); armed != armed_.end(); ++armed) {
    if (armed->fault != fault || (!target.empty() && armed->target != target)) continue;
    if (armed->skip > 0) {
      --armed->skip;
      continue;
    }
    if (value != nullptr) *value = armed->value;
    if (armed_target != nullptr) *armed_target = armed->target;
    struck_[index].fetch_add(1, std::memory_order_relaxed);
    if (armed->count > 0 && --armed->count == 0) {
      armed_.erase(armed);
      armed_counts_[index].fetch_sub(1, std::memory_order_release);
      armed_total_.fetch_sub(1, std::memory_order_release);
    }
    return true;
  }
  return false;
}

void MisuseCounters::count(Misuse misuse) {
  const auto index = static_cast<size_t>(misuse);
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  if (abort_on_fatal_ && kMisuses[index].fatal) {
    std::fprintf(stderr, "simulated CUPTI: %s: %s\n", kMisuses[index].name, kMisuses[index].description);
    std::abort();
  }
}

}  // namespace collector::simulator
