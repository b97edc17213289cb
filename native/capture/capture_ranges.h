// The ranges of a program to which a recording can be restricted: the work between calls of cuProfilerStart and
// cuProfilerStop, or inside NVTX ranges of one name.
//
// A session that records ranges is open all the time: it follows annotations and the building of CUDA graphs, so that
// the work of a range has their names. The kinds of activity that cost something per call or per kernel are enabled
// only while a range is open; kernels and copies stay enabled until those of the range have finished.
#pragma once

#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "capture/open_annotations.h"
#include "cupti/process_use.h"
#include "threads/mutex.h"

namespace collector::capture {

struct CaptureRangeOptions {
  enum class Source : uint8_t {
    kNone,         // everything is recorded
    kProfilerApi,  // cuProfilerStart, cuProfilerStop
    kNvtx,
  };

  // The largest number of ranges whose bounds can be stated; later ranges are counted and not recorded.
  static constexpr uint32_t kMostRanges = 4096;

  Source source = Source::kNone;
  std::string name;             // of the NVTX ranges
  std::string domain;           // empty: the default domain
  bool any_domain = false;      // whether ranges of all domains count
  uint32_t most = kMostRanges;  // ranges that are recorded

  bool has_ranges() const { return source != Source::kNone; }
};

// Follows the calls of the program that open and close ranges. The first range that opens while none is open begins a
// range of the session, and the last one that closes ends it. Thread-safe.
class CaptureRanges {
 public:
  // Created by the first call and never destroyed: programs call NVTX until they end.
  static CaptureRanges& instance() noexcept;

  // What records the ranges: it is told when one begins and when it ends. Stays.
  struct Recorder {
    void (*begin)();
    void (*end)();
  };
  void set_recorder(const Recorder* recorder) { recorder_.store(recorder, std::memory_order_release); }

  // Decides what is watched from now on. For the begin of a process: the options before are not freed.
  void select(const CaptureRangeOptions& options);

  // Whether NVTX ranges are to be reported, also while no session is open. A child that was forked after CUDA was used
  // records nothing.
  static bool watches_nvtx() noexcept {
    return is_watching_nvtx.load(std::memory_order_relaxed) && !cupti::out_of_use();
  }

  // The program's calls of cuProfilerStart (after it) and of cuProfilerStop (before it). As in CUDA, a second start has
  // no effect.
  void profiler_started() noexcept;
  void profiler_stopped() noexcept;

  // NVTX ranges of this thread: `owner` is the domain. Called before a range is recorded, and after its end was.
  void pushed(Owner owner, std::string_view name, std::string_view domain) noexcept;
  void popped(Owner owner) noexcept;
  // A thread has ended inside `count` of the ranges.
  void left_by_thread(size_t count) noexcept;

  // NVTX ranges that end anywhere. Beyond kMostOpenIds open ones, which a program has forgotten to end, further ones
  // change nothing. `started` returns the id by which `ended` is called: `id`, unless that is 0 and the
  // range is one of those.
  uint64_t started(uint64_t id, std::string_view name, std::string_view domain) noexcept;
  void ended(uint64_t id) noexcept;

  bool is_open() const noexcept { return num_open_.load(std::memory_order_acquire) > 0; }
  // The ranges so far, also those that no session was open for.
  uint32_t seen() const noexcept { return seen_.load(std::memory_order_relaxed); }

  // Sleeps until a range has been closed since the last call.
  void wait_for_close();

  // For forks, in the order in which they may be taken.
  std::array<threads::Mutex*, 2> mutexes() { return {&changing_, &mutex_}; }

 private:
  CaptureRanges() noexcept;

  // Takes no lock: most ranges match nothing, and programs fork while other threads push ranges.
  bool matches(std::string_view name, std::string_view domain) const;
  void open();
  void close();

  static std::atomic<bool> is_watching_nvtx;

  std::atomic<bool> has_profiler_started_{false};
  std::atomic<int> num_open_{0};
  std::atomic<uint32_t> seen_{0};
  threads::Mutex changing_;                                   // held while the recorder is told
  std::atomic<const Recorder*> recorder_{nullptr};            // null: there is none yet
  std::atomic<const CaptureRangeOptions*> options_{nullptr};  // null: nothing is watched
  threads::Mutex mutex_;                                      // never held around a call of anything else
  static constexpr size_t kMostOpenIds = size_t{1} << 16;
  std::set<uint64_t> open_ids_ GUARDED_BY(mutex_);
  uint64_t last_own_id_ GUARDED_BY(mutex_) = uint64_t{1} << 62;
  sem_t closed_;
};

}  // namespace collector::capture
