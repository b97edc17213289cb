#include "capture/budget.h"

#include <algorithm>
#include <numeric>

namespace collector::capture {
namespace {

using cupti::ActivityKind;

// By lever.
constexpr std::array<const char*, kLevers> kFigures = {
    "shed_driver_api_ns",        "shed_nvtx_ranges_ns", "shed_synchronizations_ns", "shed_api_calls_ns",
    "shed_memory_operations_ns", "shed_memsets_ns",     "shed_memcpys_ns",          "shed_graph_nodes_ns",
};

constexpr int64_t kMillion = 1'000'000;

uint64_t bit_of(ActivityKind kind) { return uint64_t{1} << static_cast<uint32_t>(kind); }

}  // namespace

const std::vector<ActivityKind>& kinds_of(Lever lever) {
  static const auto& kinds = *new std::array<std::vector<ActivityKind>, kLevers>{{
      {ActivityKind::kDriver},
      {},
      {ActivityKind::kSynchronization, ActivityKind::kCudaEvent},
      {ActivityKind::kRuntime, ActivityKind::kDriver, ActivityKind::kExternalCorrelation},
      {ActivityKind::kMemory2},
      {ActivityKind::kMemset},
      {ActivityKind::kMemcpy, ActivityKind::kMemcpy2},
      {},
  }};
  return kinds[static_cast<size_t>(lever)];
}

void Budget::begin(uint32_t millionths, int64_t period_ns, const std::vector<ActivityKind>& kinds) {
  millionths_.store(millionths, std::memory_order_relaxed);
  period_ns_ = period_ns;
  next_check_ns_ = INT64_MAX;
  in_excess_ = 0;
  highest_millionths_ = 0;
  last_millionths_ = 0;
  since_ns_.fill(0);
  enabled_ = 0;
  for (const ActivityKind kind : kinds) enabled_ |= bit_of(kind);
}

bool Budget::records(ActivityKind kind) const { return (enabled_ & bit_of(kind)) != 0; }

void Budget::start_period(int64_t now_ns, const Spent& spent) {
  began_ns_ = now_ns;
  next_check_ns_ = now_ns + period_ns_;
  before_ = spent;
  range_ns_before_ = range_ns_.load(std::memory_order_relaxed);
  program_ns_before_ = callback_ns_.load(std::memory_order_relaxed) + range_ns_before_;
}

std::optional<Lever> Budget::check(int64_t now_ns, const Spent& spent) {
  if (now_ns < next_check_ns_) return std::nullopt;
  const int64_t in_ranges = range_ns_.load(std::memory_order_relaxed);
  const int64_t range_ns = in_ranges - range_ns_before_;
  const int64_t program_ns = callback_ns_.load(std::memory_order_relaxed) + in_ranges - program_ns_before_;
  const int64_t cost_ns =
      spent.decode_cpu_ns - before_.decode_cpu_ns + spent.overhead_ns - before_.overhead_ns + program_ns;
  const int64_t share = cost_ns * (kMillion / 1000) / std::max((now_ns - began_ns_) / 1000, int64_t{1});
  highest_millionths_ = std::max(highest_millionths_, share);
  last_millionths_ = share;
  in_excess_ = share > int64_t{millionths_.load(std::memory_order_relaxed)} ? in_excess_ + 1 : 0;
  std::optional<Lever> found;
  for (size_t number = 0; number < kLevers && in_excess_ >= kPeriodsInExcess && !found; ++number) {
    const auto lever = static_cast<Lever>(number);
    if (!is_left_out(lever) && is_worth(lever, spent, cost_ns, range_ns)) found = lever;
  }
  start_period(now_ns, spent);
  return found;
}

bool Budget::is_worth(Lever lever, const Spent& spent, int64_t cost_ns, int64_t range_ns) const {
  if (lever == Lever::kNvtxRanges) return range_ns * int64_t{kLeastShare} >= std::max(cost_ns, int64_t{1});
  if (lever == Lever::kGraphNodes) return spent.has_graphs && !records(ActivityKind::kGraphTrace);
  const auto since_begin = [&](size_t kind) { return spent.records[kind] - before_.records[kind]; };
  // Driver calls of a program that makes few others have names that nothing repeats.
  if (lever == Lever::kDriverApi && since_begin(static_cast<size_t>(ActivityKind::kRuntime)) <
                                        since_begin(static_cast<size_t>(ActivityKind::kDriver)) / 2) {
    return false;
  }
  uint64_t all = 0;
  for (size_t kind = 0; kind < spent.records.size(); ++kind) all += since_begin(kind);
  uint64_t own = 0;
  for (const ActivityKind kind : kinds_of(lever)) own += since_begin(static_cast<size_t>(kind));
  return own > 0 && own * kLeastShare >= all;
}

void Budget::left_out(Lever lever, int64_t since_ns) {
  since_ns_[static_cast<size_t>(lever)] = std::max(since_ns, int64_t{1});
  in_excess_ = 0;
}

std::map<std::string, int64_t> Budget::counters() const {
  std::map<std::string, int64_t> counters;
  if (!is_set()) return counters;
  counters["budget_millionths"] = millionths_.load(std::memory_order_relaxed);
  counters["budget_highest_millionths"] = highest_millionths_;
  counters["budget_last_millionths"] = last_millionths_;
  for (size_t lever = 0; lever < kLevers; ++lever) {
    if (since_ns_[lever] != 0) counters[kFigures[lever]] = since_ns_[lever];
  }
  return counters;
}

bool SampledCalls::choose() noexcept {
  if (state_ == 0) {
    static std::atomic<uint64_t> started{0};
    state_ = (started.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9e3779b97f4a7c15;
    until_next_ = distance();
    return next();
  }
  until_next_ = distance();
  return true;
}

uint32_t SampledCalls::distance() noexcept {
  // xorshift64*, of Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
  const auto random = [this] {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (state_ * 0x2545f4914f6cdd1d) >> 32;
  };
  uint32_t calls = 1;
  while (random() % Budget::kSampledCalls != 0) ++calls;
  return calls;
}

}  // namespace collector::capture
