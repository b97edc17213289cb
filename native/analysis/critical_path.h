// The critical path of a recording: the cause for which the last activity waited, and so on back to the beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/intervals.h"

namespace collector::analysis {

constexpr int64_t kNone = -1;

enum class SegmentKind : uint8_t {
  kActivity = 0,       // an activity ran
  kLaunchLatency = 1,  // it had been launched, and had not begun
  kKernelGap = 2,      // the activity before it on its stream had ended a short time ago
  kDependency = 3,     // its cause had ended, or the activity before it on its stream a longer time ago
  kSynchronize = 4,    // the awaited work had ended, and the call had not returned
  kHost = 5,           // the host did something else than to wait for a device
  kUnknown = 6,        // the cause of the wait of the activity after it is unknown
};

// The activities of devices, in order of starts.
struct PathActivities {
  IntervalColumns times;
  Column<int64_t> queues;      // of each the number of its stream; all streams of all devices are counted together
  Column<int64_t> call_times;  // when its launch was called; of no meaning without a thread
  Column<int64_t> threads;     // thread that called it; kNone: the call is not known
  Column<int64_t> graphs;      // number of the graph launch that it is a node of; kNone: of none

  size_t size() const { return times.size(); }
};

// Waits of streams for the work in another stream.
struct StreamWaits {
  Column<int64_t> queues;
  Column<int64_t> called_at;    // work launched later into that stream waits
  Column<int64_t> sources;      // stream that it waits for
  Column<int64_t> recorded_at;  // work launched before into that stream is waited for
};

// Calls in which the host waited, in order of threads and of ends.
struct HostWaits {
  IntervalColumns times;
  Column<int64_t> threads;
  Column<int64_t> activities;      // the activity that was waited for; kNone: streams
  Column<int64_t> queue_sets;      // place in `set_bounds` of the streams that were waited for
  Column<int64_t> launched_until;  // work launched into them before was waited for
  Column<int64_t> set_bounds;      // of each set the place of its first stream in `set_queues`, and of all one more
  Column<int64_t> set_queues;
};

struct Path {
  // Segments that follow each other without gaps, in order of time.
  std::vector<uint8_t> kinds;
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  // Of kSynchronize the row of the wait, of the others that of the activity: the one that ran, or whose start or launch
  // the segment leads to.
  std::vector<int64_t> rows;
};

// Walks back from the last end. Where an activity began, the path goes on with what it waited for last: the activity
// before it on its stream (where that still ran, as long as that ran alone), what a wait of its stream was for, the
// node of its graph launch that ended last before, or the call that launched it; of these the one that was met last,
// and of equal times the first. From a call the path goes back along its thread to the last call that had to wait for a
// device, and on with what that waited for.
//
// `first` is where the path begins: no later than any call and activity.
Path critical_path(const PathActivities& activities, const StreamWaits& stream_waits, const HostWaits& host_waits,
                   int64_t first, int64_t kernel_gap_ns);

}  // namespace collector::analysis
