#include "draw/merge_visitor.h"

#include <algorithm>
#include <limits>

namespace collector::draw {

void MergeVisitor::start_step(int64_t start_ns, std::string_view owner) {
  ++step_;
  start_ns_ = start_ns;
  owner_ = owner;
  pid_of_.clear();
  track_of_.clear();
  counter_of_.clear();
  step_counters_.clear();
  last_track_ = nullptr;
}

void MergeVisitor::on_begin(const Summary& summary) {
  total_.left_out += summary.left_out;
  total_.left_out_ns += summary.left_out_ns;
  total_.longest_left_out_ns = std::max(total_.longest_left_out_ns, summary.longest_left_out_ns);
  total_.filtered += summary.filtered;
  total_.untimed += summary.untimed;
  total_.end_ns = std::max(total_.end_ns, summary.end_ns);
  if (begun_) return;
  begun_ = true;
  total_.base_ns = summary.base_ns;
  writer_.on_begin(summary);
}

void MergeVisitor::on_process(const Process& process) {
  Process described = process;
  described.pid = pid_of_[process.pid] = order_.pid_of(owner_, process.name);
  if (!begun_pids_.insert(described.pid).second) return;
  std::string name;
  if (!owner_.empty()) {
    name = owner_ + " ";
    name.append(process.name);
    described.name = name;
  }
  writer_.on_process(described);
}

MergeVisitor::Row* MergeVisitor::free_row(std::deque<Row>& rows, int64_t time_ns) const {
  for (Row& row : rows) {
    if (row.last_step != step_ && row.last_end_ns <= time_ns) {
      row.last_step = step_;
      return &row;
    }
  }
  return nullptr;
}

MergeVisitor::Row* MergeVisitor::new_row(std::deque<Row>& rows, uint32_t id) const {
  rows.push_back({id, std::numeric_limits<int64_t>::min(), step_});
  return &rows.back();
}

void MergeVisitor::on_track(const Track& track) {
  Track described = track;
  described.pid = pid_of_.at(track.pid);
  std::deque<Row>& rows = tracks_[RowKey{described.pid, std::string(track.name)}];
  Row* row = free_row(rows, start_ns_);
  const bool is_new = row == nullptr;
  if (is_new) row = new_row(rows, order_.take_tid(owner_, track.device));
  track_of_[track.tid] = row;
  if (!is_new) return;
  described.tid = row->id;
  std::string name(track.name);
  if (rows.size() > 1) described.name = name += " (" + std::to_string(rows.size()) + ")";
  writer_.on_track(described);
}

void MergeVisitor::on_slice(const Slice& slice) {
  if (last_track_ == nullptr || last_tid_ != slice.tid) {
    last_tid_ = slice.tid;
    last_track_ = track_of_.at(slice.tid);
  }
  Slice moved = slice;
  moved.pid = pid_of_.at(slice.pid);
  moved.tid = last_track_->id;
  moved.alike = 0;  // these numbers are valid only within one step
  last_track_->last_end_ns = std::max(last_track_->last_end_ns, slice.start_ns + slice.duration_ns);
  writer_.on_slice(moved);
}

void MergeVisitor::on_counter_track(const CounterTrack& counter) {
  step_counters_[counter.id] = {pid_of_.at(counter.pid), std::string(counter.name), std::string(counter.unit)};
}

// A free row is chosen only now, because memory may be allocated before the step's first op starts.
MergeVisitor::Row& MergeVisitor::counter_row(uint32_t id, int64_t time_ns) {
  const StepCounter& counter = step_counters_.at(id);
  std::deque<Row>& rows = counters_[RowKey{counter.pid, counter.name}];
  Row* row = free_row(rows, time_ns - 1);
  if (row == nullptr) {
    row = new_row(rows, id);
    std::string& name = counter_names_[id] = counter.name;
    if (rows.size() > 1) name += " (" + std::to_string(rows.size()) + ")";
    writer_.on_counter_track({counter.pid, id, name, counter.unit});
  }
  return *row;
}

void MergeVisitor::on_value(const Value& value) {
  const auto [known, is_first] = counter_of_.try_emplace(value.counter_id, nullptr);
  if (is_first) known->second = &counter_row(value.counter_id, value.time_ns);
  Row& row = *known->second;
  Value moved = value;
  moved.pid = pid_of_.at(value.pid);
  moved.counter_id = row.id;
  moved.counter_name = counter_names_.at(row.id);
  row.last_end_ns = std::max(row.last_end_ns, value.time_ns);
  writer_.on_value(moved);
}

void MergeVisitor::on_end(const Summary& summary) {
  total_.slices += summary.slices;
  total_.flows += summary.flows;
  total_.values += summary.values;
  total_.next_counter_id = summary.next_counter_id;
  total_.next_flow_id = summary.next_flow_id;
}

}  // namespace collector::draw
