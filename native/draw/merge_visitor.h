// Several steps in one picture: what is the same device or track in each becomes one process or track of the file.
//
// It stands between draw_step, called once for each step, and the writer. A track of an earlier step is used again
// where the new step begins after everything on it has ended; otherwise the new step gets a track of its own beside it,
// so that no two slices of a track overlap in part, whatever the clocks say.
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

namespace collector::convert {

class MergeVisitor : public TraceVisitor {
 public:
  // `order` knows every owner and device that will come.
  MergeVisitor(TraceVisitor& writer, TrackOrder order) : writer_(writer), order_(std::move(order)) {}

  // Before each step is drawn. `start_ns` is the step's first start, since the file's base. `owner` (a rank, a step)
  // keeps its processes apart from others' and is put before their names; empty: there is but one.
  void start_step(int64_t start_ns, std::string_view owner);

  void on_begin(const Summary& summary) override;
  void on_process(const Process& process) override;
  void on_track(const Track& track) override;
  void on_slice(const Slice& slice) override;
  void on_counter_track(const CounterTrack& counter) override;
  void on_value(const Value& value) override;
  void on_instant(const Instant& instant) override { writer_.on_instant(instant); }
  void on_end(const Summary& summary) override;

  // After the last step: the writer's on_end, with all steps' figures together.
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

  // A counter of this step, as the drawing of the step described it.
  struct StepCounter {
    uint32_t pid;
    std::string name, unit;
  };

  // The row that is free from a time on, or null.
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
  // Of this step: what the drawing of the step calls it -> what the file calls it.
  std::unordered_map<uint32_t, uint32_t> pid_of_;
  std::unordered_map<uint32_t, Row*> track_of_, counter_of_;
  std::unordered_map<uint32_t, StepCounter> step_counters_;
  uint32_t last_tid_ = 0;
  Row* last_track_ = nullptr;
};

}  // namespace collector::convert
