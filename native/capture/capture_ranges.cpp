#include "capture/capture_ranges.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <vector>

#include "cupti/process_use.h"
#include "threads/mutex.h"
#include "threads/patient_lock.h"

namespace collector::capture {
namespace {

// The ranges that this thread has pushed, for each owner: whether one opened a range. A thread that ends closes them.
struct PushedRanges {
  // Ranges of one kind in a row: a program that forgets to pop some may push millions.
  struct Run {
    bool matches;
    size_t count;
  };
  struct OfOwner {
    Owner owner;
    std::vector<Run> runs;  // innermost last
    size_t left_out = 0;    // inside those of the runs
  };
  static constexpr size_t kMostRuns = 4096;

  PushedRanges() = default;
  PushedRanges(const PushedRanges&) = delete;
  PushedRanges& operator=(const PushedRanges&) = delete;
  ~PushedRanges();

  OfOwner& of(Owner owner) {
    const auto known =
        std::find_if(owners.begin(), owners.end(), [owner](const auto& it) { return it.owner == owner; });
    return known != owners.end() ? *known : owners.emplace_back(OfOwner{owner, {}, 0});
  }

  std::vector<OfOwner> owners;
};

// Runs `change`; nothing that it throws may reach the program. Without memory a range is not followed.
template <typename Change>
void guarded(const Change& change) noexcept {
  try {
    change();
  } catch (...) {
    return;
  }
}

// Holds a mutex for a scope, unless that would take too long.
class Turn {
 public:
  explicit Turn(threads::Mutex& mutex) : mutex_(mutex), is_held_(threads::lock_within(mutex, threads::kPatience)) {}
  ~Turn() {
    if (is_held_) mutex_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  threads::Mutex& mutex_;
  const bool is_held_;
};

thread_local bool this_thread_has_ended = false;
thread_local PushedRanges pushed_here;

PushedRanges::~PushedRanges() {
  this_thread_has_ended = true;
  size_t count = 0;
  for (const OfOwner& each : owners) {
    for (const Run& run : each.runs) count += run.matches ? run.count : 0;
  }
  if (count > 0) CaptureRanges::instance().left_by_thread(count);
}

}  // namespace

std::atomic<bool> CaptureRanges::is_watching_nvtx{false};

CaptureRanges& CaptureRanges::instance() noexcept {
  alignas(CaptureRanges) static std::array<std::byte, sizeof(CaptureRanges)> place;
  static auto* const instance = new (place.data()) CaptureRanges();
  return *instance;
}

CaptureRanges::CaptureRanges() noexcept { ::sem_init(&closed_, 0, 0); }

void CaptureRanges::select(const CaptureRangeOptions& options) {
  options_.store(new CaptureRangeOptions(options), std::memory_order_release);
  is_watching_nvtx.store(options.source == CaptureRangeOptions::Source::kNvtx, std::memory_order_relaxed);
}

bool CaptureRanges::matches(std::string_view name, std::string_view domain) const {
  const CaptureRangeOptions* const options = options_.load(std::memory_order_acquire);
  return options != nullptr && name == options->name && (options->any_domain || domain == options->domain);
}

// Two threads that change the range at once take turns. Neither waits for ever: either may be in a callback of CUPTI,
// and what CUPTI holds there is not known.
void CaptureRanges::open() {
  if (cupti::out_of_use()) return;
  const Turn turn(changing_);
  if (num_open_.fetch_add(1, std::memory_order_acq_rel) > 0) return;
  seen_.fetch_add(1, std::memory_order_relaxed);
  if (const Recorder* const recorder = recorder_.load(std::memory_order_acquire)) recorder->begin();
}

void CaptureRanges::close() {
  if (cupti::out_of_use()) return;
  const Turn turn(changing_);
  if (num_open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (const Recorder* const recorder = recorder_.load(std::memory_order_acquire)) recorder->end();
  ::sem_post(&closed_);
}

void CaptureRanges::profiler_started() noexcept {
  guarded([this] {
    if (!has_profiler_started_.exchange(true)) open();
  });
}

void CaptureRanges::profiler_stopped() noexcept {
  guarded([this] {
    if (has_profiler_started_.exchange(false)) close();
  });
}

void CaptureRanges::pushed(Owner owner, std::string_view name, std::string_view domain) noexcept {
  if (this_thread_has_ended) return;
  guarded([&] {
    const bool is_match = matches(name, domain);
    PushedRanges::OfOwner& pushed = pushed_here.of(owner);
    const bool goes_on = !pushed.runs.empty() && pushed.runs.back().matches == is_match;
    if (pushed.left_out > 0 || (!goes_on && pushed.runs.size() == PushedRanges::kMostRuns)) {
      ++pushed.left_out;
      return;
    }
    if (goes_on) {
      ++pushed.runs.back().count;
    } else {
      pushed.runs.push_back({is_match, 1});
    }
    if (is_match) open();
  });
}

void CaptureRanges::popped(Owner owner) noexcept {
  if (this_thread_has_ended) return;
  guarded([&] {
    PushedRanges::OfOwner& pushed = pushed_here.of(owner);
    if (pushed.left_out > 0) {
      --pushed.left_out;
      return;
    }
    if (pushed.runs.empty()) return;
    const bool is_match = pushed.runs.back().matches;
    if (--pushed.runs.back().count == 0) pushed.runs.pop_back();
    if (is_match) close();
  });
}

void CaptureRanges::left_by_thread(size_t count) noexcept {
  guarded([this, count] {
    for (size_t i = 0; i < count; ++i) close();
  });
}

uint64_t CaptureRanges::started(uint64_t id, std::string_view name, std::string_view domain) noexcept {
  guarded([&] {
    if (!matches(name, domain)) return;
    {
      const threads::MutexLock lock(mutex_);
      if (open_ids_.size() == kMostOpenIds) return;  // a range is open, and stays so
      if (id == 0) id = ++last_own_id_;
      open_ids_.insert(id);
    }
    open();
  });
  return id;
}

void CaptureRanges::ended(uint64_t id) noexcept {
  if (!is_open()) return;
  guarded([this, id] {
    {
      const threads::MutexLock lock(mutex_);
      if (open_ids_.erase(id) == 0) return;
    }
    close();
  });
}

void CaptureRanges::wait_for_close() {
  while (::sem_wait(&closed_) != 0 && errno == EINTR) {
  }
}

}  // namespace collector::capture
