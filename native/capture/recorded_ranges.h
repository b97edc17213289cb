// The ranges of the program in a session that records only ranges (capture_ranges.h): their bounds, and the kinds of
// activity that are enabled for them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/buffer_pools.h"
#include "capture/capture_ranges.h"
#include "capture/decode_thread.h"
#include "capture/journal_flusher.h"
#include "capture/launch_watch.h"
#include "capture/open_session.h"
#include "capture/start_options.h"
#include "capture/subscription.h"
#include "cupti/failure.h"

namespace collector::capture {

// Not thread-safe: the session calls it with its lock held.
class RecordedRanges {
 public:
  RecordedRanges(const OpenSession& session, Subscription& subscription, const BufferPools& pools,
                 const JournalFlusher& flusher, DecodeThread& decode_thread)
      : session_(session),
        subscription_(subscription),
        pools_(pools),
        flusher_(flusher),
        decode_thread_(decode_thread) {}

  // Begins a session. In one that records only ranges, the kinds whose records are few are enabled from now on.
  std::optional<cupti::Failure> begin(const StartOptions& options);

  // Whether the session records only ranges.
  bool are_chosen() const { return options_.has_ranges(); }
  // Whether it does, and none is open.
  bool are_paused() const { return are_chosen() && !is_open_; }
  // Whether, besides, the kinds of ranges are disabled.
  bool are_at_rest() const { return are_paused() && !has_kinds_; }

  // The begin and the end of a range, which was at this time of CUPTI.
  void open();
  void close(int64_t cupti_ns);

  // Disables the kinds of activity after the end of a range, once its work has finished or did not for long. Returns
  // whether to call it again; `kOver`: no further range will be recorded.
  enum class Settling : uint8_t { kSettled, kWaiting, kOver };
  // Whether settle() has anything to do.
  bool is_settling() const { return !is_open_ && has_kinds_; }
  // What settle() returned last, or would return if it had nothing to do.
  Settling state() const;
  Settling settle(const std::optional<WatchedState>& watched);

  // The kinds stay disabled in later ranges, or are enabled in them, too.
  void leave_out(const std::vector<cupti::ActivityKind>& kinds);
  void add(cupti::ActivityKind kind) { work_kinds_.push_back(kind); }

  // The numbers that a journal and a ledger state, besides the bounds of each range: at the begin, and by now.
  static std::map<std::string, int64_t> first_counts() { return counts(0, 0); }
  std::map<std::string, int64_t> counts() const { return counts(CaptureRanges::instance().seen(), recorded_); }

 private:
  static std::map<std::string, int64_t> counts(uint32_t seen, uint32_t recorded);
  // Whether the last range that is recorded has ended.
  bool is_over() const { return !is_open_ && recorded_ >= options_.most; }
  bool enable_kinds();
  // States a bound of the last range, if it is given, and the counts.
  void note(const char* bound = nullptr, int64_t cupti_ns = 0);

  const OpenSession& session_;
  Subscription& subscription_;
  const BufferPools& pools_;
  const JournalFlusher& flusher_;
  DecodeThread& decode_thread_;
  CaptureRangeOptions options_;
  std::vector<cupti::ActivityKind> work_kinds_;  // those that are enabled for a range
  uint32_t recorded_ = 0;
  bool is_open_ = false;
  bool has_kinds_ = false;          // whether they are enabled
  int64_t closed_ns_ = 0;           // on CLOCK_MONOTONIC
  uint64_t flushes_ = 0;            // up to then
  uint64_t buffers_requested_ = 0;  // likewise
};

}  // namespace collector::capture
