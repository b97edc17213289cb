// Several steps in one drawing: equal devices and tracks of the steps share one process or track of the file.
//
// The visitor stands between draw_step, called once for each step, and the writer. A track of an earlier step is reused
// if the new step begins after all slices on it have ended. Otherwise the new step gets another track beside it, so
// that the slices of a track never partly overlap, even if the clocks are wrong.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "draw/events.h"
#include "draw/track_order.h"

namespace collector::draw {

class MergeVisitor : public TraceVisitor {
 public:
  // `order` must contain every owner and device that will occur.
  MergeVisitor(TraceVisitor& writer, TrackOrder order) : writer_(writer), order_(std::move(order)) {}

  // Must be called before each step is drawn. `start_ns` is the step's first start since the file's base. `owner` (a
  // rank, a step) separates its processes from those of other owners and is put before their names; it is empty if
  // there is only one.
  void start_step(int64_t start_ns, std::string_view owner);

  void on_begin(const Summary& summary) override;
  void on_process(const Process& process) override;
  void on_track(const Track& track) override;
  void on_slice(const Slice& slice) override;
  void on_counter_track(const CounterTrack& counter) override;
  void on_value(const Value& value) override;
  void on_instant(const Instant& instant) override { writer_.on_instant(instant); }
  void on_end(const Summary& summary) override;

  // Must be called after the last step: calls the writer's on_end with the totals of all steps.
  void finish() { writer_.on_end(total_); }

  const Summary& total() const { return total_; }

 private:
  // A track or counter of the file.
  struct Row {
    uint32_t id;
    int64_t last_end_ns;
    uint64_t last_step;
  };
  using RowKey = std::tuple<uint32_t, std::string>;  // pid in the file, name

  // A counter of this step, as announced by the step's drawing.
  struct StepCounter {
    uint32_t pid;
    std::string name, unit;
  };

  // A row that is free from a time on, or null.
  Row* free_row(std::deque<Row>& rows, int64_t time_ns) const;
  Row* new_row(std::deque<Row>& rows, uint32_t id) const;
  Row& counter_row(uint32_t id, int64_t time_ns);

  TraceVisitor& writer_;
  TrackOrder order_;
  Summary total_;
  bool begun_ = false;
  uint64_t step_ = 0;
  int64_t start_ns_ = 0;
  std::string owner_;

  std::set<uint32_t> begun_pids_;
  std::map<RowKey, std::deque<Row>> tracks_, counters_;
  std::unordered_map<uint32_t, std::string> counter_names_;
  // Maps the ids that this step's drawing uses to those of the file.
  std::unordered_map<uint32_t, uint32_t> pid_of_;
  std::unordered_map<uint32_t, Row*> track_of_, counter_of_;
  std::unordered_map<uint32_t, StepCounter> step_counters_;
  uint32_t last_tid_ = 0;
  Row* last_track_ = nullptr;
};

}  // namespace collector::draw
