// What is left out of a recording that costs more than it may, in which order, and when.
#include <doctest/doctest.h>

#include <array>
#include <ctime>
#include <optional>
#include <vector>

#include "capture/budget.h"

using collector::capture::Budget;
using collector::capture::kMillisecond;
using collector::capture::Lever;
using collector::capture::SampledCalls;
using collector::capture::SampledTime;
using collector::capture::Spent;
using collector::cupti::ActivityKind;

namespace {

constexpr int64_t kPeriod = 100 * kMillisecond;

const std::vector<ActivityKind>& all_kinds() {
  static const std::vector<ActivityKind> kinds{
      ActivityKind::kExternalCorrelation, ActivityKind::kRuntime, ActivityKind::kDriver,
      ActivityKind::kConcurrentKernel,    ActivityKind::kMemcpy,  ActivityKind::kMemset,
      ActivityKind::kSynchronization,     ActivityKind::kMemory2};
  return kinds;
}

// A session whose periods follow one another.
struct Periods {
  explicit Periods(uint32_t millionths, const std::vector<ActivityKind>& kinds = all_kinds()) {
    budget.begin(millionths, kPeriod, kinds);
    budget.start_period(now, spent);
  }

  std::optional<Lever> next(int64_t cost_ns, const std::vector<ActivityKind>& recorded) {
    now += kPeriod;
    spent.decode_cpu_ns += cost_ns;
    for (const ActivityKind kind : recorded) spent.records[static_cast<size_t>(kind)] += 100;
    return budget.check(now, spent);
  }

  // The levers that periods in excess lead to.
  std::vector<Lever> used(int periods, const std::vector<ActivityKind>& recorded) {
    std::vector<Lever> found;
    for (int period = 0; period < periods; ++period) {
      if (const auto lever = next(kPeriod / 2, recorded)) {
        found.push_back(*lever);
        budget.left_out(*lever, now);
      }
    }
    return found;
  }

  Budget budget;
  int64_t now = 1;
  Spent spent;
};

}  // namespace

TEST_CASE("nothing is left out of a recording that keeps its budget") {
  Periods periods(10'000);
  for (int period = 0; period < 20; ++period) {
    CHECK_FALSE(periods.next(kPeriod / 100, all_kinds()).has_value());
  }
  CHECK(periods.budget.counters().at("budget_millionths") == 10'000);
  CHECK(periods.budget.counters().at("budget_highest_millionths") == 10'000);
  CHECK(periods.budget.counters().at("budget_last_millionths") == 10'000);
  CHECK(periods.budget.counters().size() == 3);
}

TEST_CASE("one expensive period changes nothing, two in succession do") {
  Periods periods(10'000);
  CHECK_FALSE(periods.next(kPeriod, all_kinds()).has_value());
  CHECK_FALSE(periods.next(0, all_kinds()).has_value());
  CHECK_FALSE(periods.next(kPeriod, all_kinds()).has_value());
  CHECK(periods.next(kPeriod, all_kinds()) == Lever::kDriverApi);
}

TEST_CASE("what the last period cost is stated beside the highest") {
  Periods periods(10'000);
  periods.next(kPeriod / 2, all_kinds());
  periods.next(kPeriod / 1000, all_kinds());
  CHECK(periods.budget.counters().at("budget_highest_millionths") == 500'000);
  CHECK(periods.budget.counters().at("budget_last_millionths") == 1'000);
}

TEST_CASE("the order begins with what repeats other records, and kernels stay") {
  Periods periods(1);
  const std::vector<Lever> expected{Lever::kDriverApi,        Lever::kSynchronizations, Lever::kApiCalls,
                                    Lever::kMemoryOperations, Lever::kMemsets,          Lever::kMemcpys};
  CHECK(periods.used(40, all_kinds()) == expected);
}

TEST_CASE("what would save little is passed over until it would save more") {
  Periods periods(1);
  const std::vector<ActivityKind> kernels_alone(30, ActivityKind::kConcurrentKernel);
  CHECK(periods.used(10, kernels_alone).empty());
  std::vector<ActivityKind> with_a_few_copies = kernels_alone;
  with_a_few_copies.push_back(ActivityKind::kMemcpy);
  CHECK(periods.used(10, with_a_few_copies).empty());
  CHECK(periods.used(10, {ActivityKind::kConcurrentKernel, ActivityKind::kMemcpy}) ==
        std::vector<Lever>{Lever::kMemcpys});
}

TEST_CASE("driver calls that are the only calls are left out as such") {
  Periods periods(1, {ActivityKind::kDriver, ActivityKind::kConcurrentKernel});
  CHECK(periods.used(10, {ActivityKind::kDriver}) == std::vector<Lever>{Lever::kApiCalls});
}

TEST_CASE("graphs are recorded as a whole last, if there are any") {
  Periods periods(1, {ActivityKind::kConcurrentKernel});
  CHECK(periods.used(10, {ActivityKind::kConcurrentKernel}).empty());
  periods.spent.has_graphs = true;
  CHECK(periods.used(10, {ActivityKind::kConcurrentKernel}) == std::vector<Lever>{Lever::kGraphNodes});
}

TEST_CASE("a lever that could not be used is tried again") {
  Periods periods(1);
  CHECK_FALSE(periods.next(kPeriod, all_kinds()).has_value());
  CHECK(periods.next(kPeriod, all_kinds()) == Lever::kDriverApi);
  CHECK(periods.next(kPeriod, all_kinds()) == Lever::kDriverApi);
}

TEST_CASE("a new session begins with everything") {
  Periods periods(1);
  CHECK(!periods.used(20, all_kinds()).empty());
  periods.budget.begin(1, kPeriod, all_kinds());
  periods.budget.start_period(periods.now, periods.spent);
  CHECK(periods.budget.counters().size() == 3);
  CHECK(periods.used(2, all_kinds()) == std::vector<Lever>{Lever::kDriverApi});
}

TEST_CASE("the time in ranges counts, and is saved by leaving ranges out") {
  Periods periods(10'000, {ActivityKind::kConcurrentKernel});
  std::vector<Lever> found;
  for (int period = 0; period < 3; ++period) {
    periods.budget.add_range_ns(kPeriod / 2);
    if (const auto lever = periods.next(0, {})) found.push_back(*lever);
  }
  CHECK(found == std::vector<Lever>{Lever::kNvtxRanges, Lever::kNvtxRanges});
}

TEST_CASE("a call that was interrupted counts as a long one, and not as the time of others") {
  Periods periods(1, {ActivityKind::kConcurrentKernel});
  const timespec interruption = collector::capture::timespec_of(20 * kMillisecond);
  SampledCalls calls(1);
  for (SampledCalls same(1); !same.next();) const SampledTime time(periods.budget, false, calls);
  {
    const SampledTime time(periods.budget, false, calls);
    ::nanosleep(&interruption, nullptr);
  }
  CHECK_FALSE(periods.next(0, {}).has_value());
  CHECK(periods.budget.counters().at("budget_highest_millionths") ==
        Budget::kLongestCall * Budget::kSampledCalls * 1'000'000 / kPeriod);
}

TEST_CASE("each call of a loop is timed as often as the others") {
  constexpr uint32_t kTimed = 10'000;  // of each call of the loop
  for (uint32_t in_loop = 1; in_loop <= 4 * Budget::kSampledCalls; ++in_loop) {
    SampledCalls calls(in_loop);
    std::vector<uint32_t> timed(in_loop);
    for (uint32_t call = 0; call < kTimed * Budget::kSampledCalls * in_loop; ++call)
      timed[call % in_loop] += calls.next();
    for (const uint32_t count : timed) {
      CHECK(count > kTimed * 9 / 10);
      CHECK(count < kTimed * 11 / 10);
    }
  }
}

TEST_CASE("the calls of threads that make few of them are timed as often as others") {
  constexpr uint32_t kThreads = 100'000;
  std::array<uint32_t, 4> timed{};
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    SampledCalls calls;
    for (uint32_t& count : timed) count += calls.next();
  }
  for (const uint32_t count : timed) {
    CHECK(count > kThreads / Budget::kSampledCalls * 9 / 10);
    CHECK(count < kThreads / Budget::kSampledCalls * 11 / 10);
  }
}

TEST_CASE("ranges in a loop whose annotations are as many are found to cost their part") {
  Periods periods(1, {ActivityKind::kConcurrentKernel});
  std::vector<Lever> found;
  for (int period = 0; period < 2; ++period) {
    for (uint32_t step = 0; step < 1U << 16; ++step) {
      for (const bool is_range : {false, true, true, false}) const SampledTime time(periods.budget, is_range);
    }
    if (const auto lever = periods.next(0, {})) found.push_back(*lever);
  }
  CHECK(found == std::vector<Lever>{Lever::kNvtxRanges});
}

TEST_CASE("without a budget nothing is measured, and there is nothing to say") {
  Budget budget;
  budget.begin(0, kPeriod, all_kinds());
  for (uint32_t call = 0; call < 4 * Budget::kSampledCalls; ++call) const SampledTime time(budget, true);
  CHECK_FALSE(budget.is_set());
  CHECK(budget.counters().empty());
  CHECK(budget.next_check_ns() == INT64_MAX);
}
