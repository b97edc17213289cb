// The options of a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "capture/budget.h"
#include "capture/capture_ranges.h"
#include "capture/journal_segments.h"
#include "capture/range_selection.h"
#include "cupti/library.h"
#include "kinds/generated/kinds.h"

namespace collector::capture {

// Who opened a session, and alone may end it.
enum class Holder : uint8_t {
  kCaller,     // the program, by collector.trace
  kInjection,  // `collector run`, for a program that imports nothing
  kRecorder,   // the program, by collector.record
  kControl,    // `collector attach`, from another process
};

struct StartOptions {
  cupti::LibraryPaths paths;
  std::vector<cupti::ActivityKind> kinds;  // enabled in this order
  size_t buffer_bytes = size_t{4} << 20;
  uint32_t max_buffers = 256;
  // Collect even if another client of this process holds the subscription. Kineto subscribes at its first use and never
  // unsubscribes; while it is idle, activity records can be collected beside it.
  bool share_subscription = false;
  // The file for a Journal; empty for none.
  std::string journal;
  // Facts for the journal's first frame.
  std::map<std::string, std::string> journal_texts;
  // The journal is the only result: the session does not start without it, and rows are removed from memory once they
  // are written.
  bool journal_only = false;
  // How the journal is cut into segments, which journal_only must go with.
  SegmentLimits segments;
  // Watch for launches that do not finish and for errors, which journal_only must go with.
  bool watch = false;
  Holder holder = Holder::kCaller;
  // Ends the session in the exit of the process, before libcupti's destructors run; without it the session has no end.
  void (*end_at_exit)() = nullptr;
  // What recording may cost, in millionths of the time of one core, before kinds are left out; 0: anything.
  uint32_t budget_millionths = 0;
  int64_t budget_period_ns = Budget::kPeriod;
  // The NVTX ranges that are recorded as annotations.
  RangeSelection nvtx;
  // Record only these ranges of the program, which journal_only and watch must go with.
  CaptureRangeOptions ranges;
};

// Throws std::invalid_argument for buffer options that are impossible.
void check(const StartOptions& options);

}  // namespace collector::capture
