// The critical path of a recording: the last activity, the prerequisite that it waited for, and so on to the beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/intervals.h"

namespace collector::analysis {

constexpr int64_t kNone = -1;

enum class SegmentKind : uint8_t {
  kActivity = 0,       // an activity ran
  kLaunchLatency = 1,  // the activity had been launched and had not begun
  kKernelGap = 2,      // the activity before it on its stream had ended a short time before
  kDependency = 3,     // other work that it waited for had ended, or the activity before it on its stream long before
  kEventWait = 4,      // the stream waited for an event whose record is unknown, or for the launch
  kSynchronize = 5,    // the work that the host waited for had ended, and the call had not returned
  kHost = 6,           // the host did something other than wait for a device
  kUnknown = 7,        // the prerequisite of the following activity is unknown
};

// The activities of all devices, in order of their starts. Streams are numbered from 0 over all devices.
struct PathActivities {
  IntervalColumns times;
  Column<int64_t> streams;     // number of the stream
  Column<int64_t> call_times;  // start of the call that launched it; without meaning where the thread is kNone
  Column<int64_t> threads;     // thread of the call; kNone: the call is unknown
  Column<int64_t> graphs;      // number of the graph launch of which it is a node; kNone: it is not a node

  size_t size() const { return times.size(); }
};

// Waits of streams for events.
struct StreamWaits {
  Column<int64_t> streams;
  Column<int64_t> called_at;    // work launched later into `streams` waits
  Column<int64_t> sources;      // stream for whose work it waits; kNone: unknown
  Column<int64_t> recorded_at;  // work launched earlier into `sources` is awaited
};

// Calls in which the host waited, in order of threads and of ends.
struct HostWaits {
  IntervalColumns times;
  Column<int64_t> threads;
  Column<int64_t> activities;      // row of the awaited activity; kNone: the work of a set of streams was awaited
  Column<int64_t> stream_sets;     // number of that set
  Column<int64_t> launched_until;  // work launched into the set before this time was awaited
  Column<int64_t> set_bounds;      // for each set the index of its first stream in `set_streams`, and the end
  Column<int64_t> set_streams;
};

struct Path {
  // Segments that follow each other without gaps, in order of time.
  std::vector<uint8_t> kinds;
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  // For kSynchronize the row of the wait, for other kinds the row of the activity that ran, or to whose start or launch
  // the segment leads.
  std::vector<int64_t> rows;
};

// Walks back from the last end. At the start of an activity the path continues with the prerequisite that was met last;
// of several at the same time, with the first in this order:
//
// 1. the activity before it on its stream that ended last; if the one that began last was still running, that one,
//    which counts as met at its own start
// 2. the work for which a wait of its stream waited, up to its last end
// 3. the node of its graph launch that ended last before it
// 4. the call that launched it
//
// Where a wait of its stream was for an event whose record is unknown, and neither 2 nor 3 was met last nor the
// activity before it shortly before, the time up to its start is kEventWait: what was awaited may have ended last.
//
// From a call the path goes back along its thread to the last call that had to wait for a device, and continues with
// the work for which that call waited. `first` is the begin of the path: no later than any call and activity.
Path critical_path(const PathActivities& activities, const StreamWaits& stream_waits, const HostWaits& host_waits,
                   int64_t first, int64_t kernel_gap_ns);

}  // namespace collector::analysis
