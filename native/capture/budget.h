// The budget of a recording: its cost is measured in every period, and if the cost exceeds the budget, kinds of records
// are left out until the session ends.
//
// The cost consists of the parts that can be measured here: the CPU time of the decode thread, the time in our
// callbacks and in the functions that begin and end annotations and ranges (of which one call in kSampledCalls, on
// average, is timed), and the overheads that CUPTI itself records. The time that CUPTI adds to each API call is in none
// of them.
//
// A lever is one group of records that can be left out. Levers are used in the order of the enumeration: records that
// repeat others come first; the kernels themselves are always recorded. A lever is passed over while it would save
// little. A kind that was left out is not recorded again within the session: otherwise it would have gaps that each
// reader had to know, and CUPTI does not record the nodes of a graph again once it has recorded the graph as a whole.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/clocks.h"
#include "kinds/generated/kinds.h"

namespace collector::capture {

enum class Lever : uint8_t {
  kDriverApi,         // beside runtime calls, which say the same of most launches
  kNvtxRanges,        // of the program and its libraries
  kSynchronizations,  // and CUDA events
  kApiCalls,          // and with them the names of launches
  kMemoryOperations,
  kMemsets,
  kMemcpys,
  kGraphNodes,  // a graph is then one record
};
inline constexpr size_t kLevers = 8;

// The activity kinds that a lever disables; empty for those that are no kinds.
const std::vector<cupti::ActivityKind>& kinds_of(Lever lever);

// Records by kind, up to the largest number of a kind.
using KindCounts = std::array<uint64_t, 64>;

// The costs of a session up to now.
struct Spent {
  int64_t decode_cpu_ns = 0;
  int64_t overhead_ns = 0;
  KindCounts records{};
  bool has_graphs = false;  // whether nodes of graphs were recorded
};

// `begin`, `check` and `left_out` are called by one thread at a time: the session's before the decode thread starts,
// then the decode thread's. The functions that add a time may be called by all threads; they take no lock and allocate
// nothing.
class Budget {
 public:
  static constexpr int64_t kPeriod = 1000 * kMillisecond;
  static constexpr uint32_t kSampledCalls = 16;

  // Begins a session. `millionths`: of the time of one core; 0: there is no budget.
  void begin(uint32_t millionths, int64_t period_ns, const std::vector<cupti::ActivityKind>& kinds);

  bool is_set() const { return millionths_.load(std::memory_order_relaxed) != 0; }

  // Starts the first period.
  void start_period(int64_t now_ns, const Spent& spent);
  // The end of the period on CLOCK_MONOTONIC.
  int64_t next_check_ns() const { return next_check_ns_; }

  // Ends the period if it is over. The lever to use now; no value: the budget is kept, or nothing is left that would
  // save enough.
  std::optional<Lever> check(int64_t now_ns, const Spent& spent);
  // The lever has been used `since_ns` after the session's start.
  void left_out(Lever lever, int64_t since_ns);
  bool is_left_out(Lever lever) const { return since_ns_[static_cast<size_t>(lever)] != 0; }

  // Times of the program's threads. A call that takes longer than kLongestCall was interrupted, by threads that had
  // nothing to do with it.
  static constexpr int64_t kLongestCall = kMillisecond / 50;
  void add_callback_ns(int64_t ns) { callback_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void add_range_ns(int64_t ns) { range_ns_.fetch_add(ns, std::memory_order_relaxed); }

  // For the ledger: "budget_millionths", the largest share of a period and that of the last one, and for each lever
  // that was used the time since the session's start, at least 1 ns.
  std::map<std::string, int64_t> counters() const;

 private:
  // How many periods in succession must be too expensive: a burst, as of the first launches, changes nothing.
  static constexpr int kPeriodsInExcess = 2;
  // A lever is worth using if it stops at least 1 / kLeastShare of the records, or of the cost.
  static constexpr uint64_t kLeastShare = 20;

  bool is_worth(Lever lever, const Spent& spent, int64_t cost_ns, int64_t range_ns) const;
  bool records(cupti::ActivityKind kind) const;

  std::atomic<uint32_t> millionths_{0};
  int64_t period_ns_ = kPeriod;
  uint64_t enabled_ = 0;  // a bit for each kind
  int64_t began_ns_ = 0;  // of the period
  int64_t next_check_ns_ = INT64_MAX;
  Spent before_;  // at its begin
  int64_t program_ns_before_ = 0;
  int64_t range_ns_before_ = 0;
  int in_excess_ = 0;
  int64_t highest_millionths_ = 0;
  int64_t last_millionths_ = 0;
  std::array<int64_t, kLevers> since_ns_{};
  std::atomic<int64_t> callback_ns_{0};
  std::atomic<int64_t> range_ns_{0};
};

// Adds the time until its destruction to the budget.
class CallbackTime {
 public:
  explicit CallbackTime(Budget& budget) noexcept
      : budget_(budget), begin_ns_(budget.is_set() ? clock_ns(CLOCK_MONOTONIC) : 0) {}
  ~CallbackTime() {
    if (begin_ns_ == 0) return;
    budget_.add_callback_ns(std::min(clock_ns(CLOCK_MONOTONIC) - begin_ns_, Budget::kLongestCall));
  }
  CallbackTime(const CallbackTime&) = delete;
  CallbackTime& operator=(const CallbackTime&) = delete;

 private:
  Budget& budget_;
  const int64_t begin_ns_;
};

// The choice of the calls of a thread that are timed: each call with a probability of 1 / kSampledCalls, whichever were
// chosen before. Every 16th call would be the same one of a loop of 2, 4, 8 or 16 calls each time.
class SampledCalls {
 public:
  // One of a sequence of generators, each of which starts with another number.
  constexpr SampledCalls() noexcept = default;
  // `seed`: not 0.
  explicit SampledCalls(uint64_t seed) noexcept : state_(seed), until_next_(distance()) {}

  // Whether the next call is chosen.
  bool next() noexcept { return --until_next_ == 0 && choose(); }

  static SampledCalls& of_this_thread() noexcept {
    thread_local SampledCalls calls;  // its initial value is constant, so that each access needs no test
    return calls;
  }

 private:
  bool choose() noexcept;
  // From a chosen call to the next one.
  uint32_t distance() noexcept;

  uint64_t state_ = 0;  // of the generator; 0: it has not started
  uint32_t until_next_ = 1;
};

// The same as CallbackTime, of one call in kSampledCalls of each thread.
class SampledTime {
 public:
  SampledTime(Budget& budget, bool is_range) noexcept : budget_(budget), is_range_(is_range) {
    if (budget.is_set() && SampledCalls::of_this_thread().next()) begin_ns_ = clock_ns(CLOCK_MONOTONIC);
  }
  SampledTime(Budget& budget, bool is_range, SampledCalls& calls) noexcept : budget_(budget), is_range_(is_range) {
    if (budget.is_set() && calls.next()) begin_ns_ = clock_ns(CLOCK_MONOTONIC);
  }
  ~SampledTime() {
    if (begin_ns_ == 0) return;
    const int64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns_;
    const int64_t ns = std::min(elapsed_ns, Budget::kLongestCall) * Budget::kSampledCalls;
    if (is_range_) {
      budget_.add_range_ns(ns);
    } else {
      budget_.add_callback_ns(ns);
    }
  }
  SampledTime(const SampledTime&) = delete;
  SampledTime& operator=(const SampledTime&) = delete;

 private:
  Budget& budget_;
  const bool is_range_;
  int64_t begin_ns_ = 0;
};

}  // namespace collector::capture
