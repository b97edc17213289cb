// Flushes of CUPTI that wait for the buffers that come back, and how long that is worth waiting for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "capture/buffer_pool.h"
#include "capture/clocks.h"
#include "cupti/library.h"

namespace collector::capture {

inline constexpr int64_t kIdleWait =
    100 * kMillisecond;  // CUPTI may deliver buffers shortly after a flush has returned
inline constexpr int64_t kDeliveryWait = 500 * kMillisecond;    // the same of finished work: its buffers come, if late
inline constexpr int64_t kUnfinishedWait = 500 * kMillisecond;  // for work that is running when the journal is cut

enum class FlushMode : uint32_t {
  kFinished = 0,  // CUPTI keeps the buffers in which a record is unfinished
  kForced = 1,
};

// Has CUPTI complete its buffers, and waits for those that are missing until the deadline at most, or until none of
// them has come back for `patience_ns`. Allocates nothing: a session that ends must not stop in the middle.
template <typename CountMissing>
void flush_buffers(const cupti::Library& library, FlushMode mode, int64_t deadline_ns, int64_t patience_ns,
                   CountMissing count_missing) {
  constexpr int64_t kLongestPause = 5 * kMillisecond;  // between two flushes, of which each fills a buffer
  const auto flush = [&] { library.cupti().ActivityFlushAll(static_cast<uint32_t>(mode)); };
  flush();
  int64_t least_missing = count_missing();
  int64_t quiet_since = clock_ns(CLOCK_MONOTONIC);
  for (int64_t pause = kMillisecond / 50; least_missing > 0; pause = std::min(2 * pause, kLongestPause)) {
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    // CUPTI holds buffers back, e.g. of a running kernel or an idle thread.
    if (now > deadline_ns || now - quiet_since > patience_ns) return;
    const timespec time = timespec_of(pause);
    ::nanosleep(&time, nullptr);
    // A buffer with an unfinished record comes back when the record is finished and it is full, or is flushed again.
    if (mode == FlushMode::kFinished) flush();
    // Buffers that are requested and come back meanwhile are no progress: each flush fills one with its own overheads.
    if (const int64_t missing = count_missing(); missing < least_missing) {
      least_missing = missing;
      quiet_since = clock_ns(CLOCK_MONOTONIC);
    }
  }
}

// The same for all buffers of a session, also those with unfinished records.
void flush_all_buffers(const cupti::Library& library, const BufferPool& pool, uint32_t session, int64_t deadline_ns,
                       int64_t patience_ns);

}  // namespace collector::capture
