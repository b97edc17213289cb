// The nodes of a step as events of an XSpace, the format of XProf, line by line.
//
// Most nodes differ from others in times and ids alone. What they have in common, a name and stats, is described once
// by the caller, in the wire format of an XEvent; this code adds what each event has of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "draw/op_details.h"
#include "stepstats/activity.h"
#include "stepstats/devices.h"
#include "stepstats/step_stats.h"

namespace collector::write {

// What events have in common whose nodes differ in times and ids alone.
struct EventDescription {
  uint64_t name = 0;  // number of the name in the plane
  std::string stats;  // fields of an XEvent
};

struct LineOptions {
  // Called once for all nodes that differ in times and ids alone. The activity, if any, may be that of the node's twin
  // under `stream:all`. `is_copy`: the place of the node alone states that it is a copy.
  std::function<EventDescription(std::string_view node, std::string_view activity, bool is_copy)> describe;
  std::function<uint64_t(std::string_view name)> stat_number;  // of a stat in the plane
  int64_t origin_ns = 0;                                       // wall time from which offsets count
  int64_t shift_ns = 0;                                        // added to the times of the step
  bool by_thread = false;                                      // a line for each thread; else one line
  // Calls of another process than that of the first call on a thread have a line of their own.
  bool by_process = false;
  std::unordered_map<uint32_t, uint32_t> processes;  // of the threads of lines that are there already
  std::optional<uint64_t> first_correlation;         // added to correlation ids; no value: events have none
  std::string correlation_stat = "correlation_id";   // the name of their stat

  struct Cause {
    int64_t start_ns;  // of a step, on its own clock
    uint64_t number;
  };
  std::vector<Cause> causes;  // in order; empty: events name no cause

  std::unordered_map<size_t, uint64_t> flows;             // by node
  const draw::OpDetails* details = nullptr;               // of annotations
  std::vector<std::string> detail_stats;                  // of each of the details, fields of an XEvent
  std::unordered_map<uint32_t, std::string> event_stats;  // likewise, by the correlation id of a call
  const std::vector<uint32_t>* only = nullptr;            // these nodes alone; null: all
};

struct EventLine {
  uint32_t thread = 0;
  uint32_t other_process = 0;  // of a line for calls of another process than the thread's; 0: the thread's own line
  uint32_t process = 0;        // of the calls on the line; 0: not known
  std::string events;          // fields of an XLine
};

struct EventLines {
  std::vector<EventLine> lines;  // in the order of their first events
  uint64_t drawn = 0;
  uint64_t untimed = 0;  // nodes without a possible time
};

// The events of one step. Refers to the step, which must outlive it.
class StepEvents {
 public:
  // Throws WireError.
  explicit StepEvents(const stepstats::StepStats& step);

  const stepstats::StepStats& step() const { return *step_; }
  // Of the nodes of a device; invalid ones of nodes without a possible time.
  const std::vector<stepstats::Span>& times(size_t device) const { return times_[device]; }

  // For each of some devices its nodes that none of the `others` has, with the same texts and times.
  std::vector<std::vector<uint32_t>> nodes_beside(const std::vector<size_t>& devices,
                                                  const std::vector<size_t>& others) const;

  // The lines of a device. Throws WireError, and whatever the functions in `options` throw.
  EventLines lines(size_t device, const LineOptions& options) const;

 private:
  void mark_unnamed_copies(const std::vector<stepstats::DeviceName>& names);

  const stepstats::StepStats* step_;
  std::vector<std::vector<stepstats::Span>> times_;        // by device
  std::vector<std::vector<std::string_view>> activities_;  // by device, of nodes that lack them; empty: not known
  std::vector<std::vector<bool>> copies_;                  // by device, whether a node is a copy; empty: none is
};

}  // namespace collector::write
