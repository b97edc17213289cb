#include "capture/recorded_ranges.h"

#include <algorithm>

#include "capture/clocks.h"
#include "kinds/generated/kinds.h"

namespace collector::capture {
namespace {

constexpr int64_t kLongestSettling = 5'000 * kMillisecond;  // of the work of a range that has ended

// The kinds that are disabled as soon as a range ends. The others stay enabled until its work has finished.
std::vector<cupti::ActivityKind> call_kinds() { return {cupti::ActivityKind::kRuntime, cupti::ActivityKind::kDriver}; }

}  // namespace

std::optional<cupti::Failure> RecordedRanges::begin(const StartOptions& options) {
  options_ = options.ranges;
  work_kinds_.clear();
  recorded_ = 0;
  is_open_ = has_kinds_ = false;
  if (!are_chosen()) return std::nullopt;
  // Records of objects are few, and are written once.
  std::vector<cupti::ActivityKind> objects;
  for (const cupti::ActivityKind kind : options.kinds) {
    (cupti::is_made_once(kind) ? objects : work_kinds_).push_back(kind);
  }
  if (options_.source == CaptureRangeOptions::Source::kProfilerApi) {
    if (auto failure = subscription_.watch_profiler_calls()) return failure;
  }
  return subscription_.enable(objects);
}

void RecordedRanges::open() {
  if (!are_chosen() || is_open_) return;
  if (is_over() || !enable_kinds()) {
    note();
    return;
  }
  is_open_ = has_kinds_ = true;
  ++recorded_;
  note("begin_ns", session_.cupti_now());
}

bool RecordedRanges::enable_kinds() {
  if (!subscription_.enable(work_kinds_)) return true;
  // Work of the range before may go on, and is recorded until it has settled.
  subscription_.disable(has_kinds_ ? call_kinds() : work_kinds_);
  return false;
}

void RecordedRanges::close(int64_t cupti_ns) {
  if (!is_open_) return;
  is_open_ = false;
  // Without records of later calls, LaunchWatch counts only the launches of ranges.
  subscription_.disable(call_kinds());
  closed_ns_ = clock_ns(CLOCK_MONOTONIC);
  flushes_ = flusher_.flushes();
  buffers_requested_ = pools_.current()->requested();
  note("end_ns", cupti_ns);
}

void RecordedRanges::note(const char* bound, int64_t cupti_ns) {
  std::map<std::string, int64_t> numbers = counts();
  if (bound != nullptr) numbers["range." + std::to_string(recorded_) + "." + bound] = cupti_ns;
  decode_thread_.note_facts({}, numbers);
}

RecordedRanges::Settling RecordedRanges::state() const {
  if (is_settling()) return Settling::kWaiting;
  return is_over() ? Settling::kOver : Settling::kSettled;
}

RecordedRanges::Settling RecordedRanges::settle(const std::optional<WatchedState>& watched) {
  if (!is_settling()) return state();
  // What came back by a flush is decoded before the next one.
  const bool is_up_to_date = flusher_.flushes() >= flushes_ + 2;
  const bool is_complete =
      watched && watched->outstanding == 0 && pools_.current()->outstanding(session_.number(), buffers_requested_) == 0;
  const bool is_late = clock_ns(CLOCK_MONOTONIC) - closed_ns_ > kLongestSettling;
  if (!is_late && !(is_up_to_date && is_complete)) return Settling::kWaiting;
  subscription_.disable(work_kinds_);
  has_kinds_ = false;
  return state();
}

void RecordedRanges::leave_out(const std::vector<cupti::ActivityKind>& kinds) {
  const auto is_left_out = [&](cupti::ActivityKind kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  work_kinds_.erase(std::remove_if(work_kinds_.begin(), work_kinds_.end(), is_left_out), work_kinds_.end());
}

std::map<std::string, int64_t> RecordedRanges::counts(uint32_t seen, uint32_t recorded) {
  return {{"capture_ranges_seen", seen}, {"capture_ranges_recorded", recorded}};
}

}  // namespace collector::capture
