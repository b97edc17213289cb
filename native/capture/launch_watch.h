// Watches a recording for trouble while it goes on: launches that do not finish, and CUDA errors after which a context
// is unusable.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "cupti/library.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

struct WatchedState {
  uint64_t rows = 0;         // of activities and calls that were recorded
  uint64_t outstanding = 0;  // launches that succeeded and of which no activity is recorded
  // Buffers that CUPTI has not handed back. When nothing is recorded any more, it keeps only those with a record that
  // is unfinished, such as that of a running kernel, and with them the calls that were recorded beside it.
  uint64_t buffers_held = 0;
  // The first call that returned an error after which the context is unusable; 0: there is none.
  uint32_t error = 0;
  uint32_t error_domain = 0;
  uint32_t error_callback = 0;
};

// A launch is known by its correlation id. The watch remembers the launches among the latest kWindow calls, and takes
// older ones for finished. Launches that are captured into a graph run later, and count as outstanding.
class LaunchWatch {
 public:
  static constexpr uint32_t kWindow = uint32_t{1} << 20;

  // Watches from now on, or not at all. Throws std::bad_alloc.
  void begin(const cupti::Library& library, bool watch);
  bool is_watching() const { return !calls_.empty(); }

  // Notes the rows of a store. Called by the decode thread.
  void notice(const store::Store& store);

  // Must be called when a function of `waits` returns, in a callback of CUPTI: after an error of a kernel, CUPTI holds
  // back the record of the kernel and the records of the calls that return the error.
  void returned(uint32_t domain, uint32_t callback_id, uint32_t result) noexcept;

  // The functions that wait for a device, which are the first to return the error of a kernel: domain and id.
  const std::set<std::pair<uint32_t, uint32_t>>& waits() const { return waits_; }

  // Any thread may ask.
  WatchedState state() EXCLUDES(mutex_);

  // Whether the error makes the context, and with it most of the program's later work, useless.
  static bool is_sticky(uint32_t error);

 private:
  enum Mark : uint8_t { kLaunched = 1, kFinished = 2 };

  void mark(uint32_t correlation_id, Mark mark);
  template <typename Row>
  void mark_finished(const store::Chunks<Row>& rows);
  void advance_to(uint32_t correlation_id);
  static bool is_outstanding(uint8_t marks) { return marks == kLaunched; }

  std::set<std::pair<uint32_t, uint32_t>> launching_;  // domain and id of the functions
  std::set<std::pair<uint32_t, uint32_t>> waits_;
  std::atomic<uint64_t> returned_{0};  // the error, domain and id that `returned` noticed first
  std::vector<uint8_t> calls_;         // the marks of each call, by the low bits of its correlation id
  uint32_t newest_ = 0;
  bool has_newest_ = false;  // whether an id has been seen
  WatchedState current_;     // of the decode thread
  threads::Mutex mutex_;     // never taken in a CUPTI callback
  WatchedState shown_ GUARDED_BY(mutex_);
};

}  // namespace collector::capture
