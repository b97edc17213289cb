#include "contract.h"

#include "checks.h"

namespace collector::fuzz {
namespace {

using draw::Argument;
using draw::Slice;

constexpr int64_t kLargestTimeNs = int64_t{1} << 53;

bool is_time(int64_t time_ns) { return time_ns >= 0 && time_ns <= kLargestTimeNs; }

}  // namespace

void Contract::on_begin(const draw::Summary& summary) {
  require(!begun_, "Begin twice");
  begun_ = true;
  announced_ = summary;
  writer_.on_begin(summary);
}

void Contract::on_process(const draw::Process& process) {
  require(begun_ && !ended_, "a process outside Begin and End");
  require(process.pid != 0 && pids_.insert(process.pid).second, "a pid that comes twice");
  require(!process.name.empty(), "a process without a name");
  writer_.on_process(process);
}

void Contract::on_track(const draw::Track& track) {
  require(pids_.count(track.pid) == 1, "a track of a process that was not announced");
  require(track.tid != 0 && !track.name.empty(), "a track without a number or name");
  require(tracks_.try_emplace(track.tid, TrackState{track.pid, track.nests, 0, {}}).second, "a tid that comes twice");
  writer_.on_track(track);
}

void Contract::on_slice(const Slice& slice) {
  const auto found = tracks_.find(slice.tid);
  require(found != tracks_.end() && found->second.pid == slice.pid, "a slice on no track of its process");
  const int64_t end_ns = slice.start_ns + slice.duration_ns;
  require(slice.duration_ns >= 0 && is_time(slice.start_ns) && is_time(end_ns), "a slice outside the time axis");
  require(several_ || end_ns <= announced_.end_ns, "a slice beyond the end that was announced");
  TrackState& track = found->second;
  require(slice.start_ns >= track.last_start_ns, "a slice that starts before the one before it");
  track.last_start_ns = slice.start_ns;
  while (!track.ends.empty() && track.ends.back() <= slice.start_ns) track.ends.pop_back();
  require(track.ends.empty() || (track.nests && end_ns <= track.ends.back()), "slices that overlap on one track");
  track.ends.push_back(end_ns);
  require(!slice.name.empty(), "a slice without a name");
  require(static_cast<size_t>(slice.category) < stepstats::kCategories, "a slice of no category");
  check_alike(slice);
  check_flows(slice);
  ++slices_;
  Slice passed = slice;
  if (hides_alike_) passed.alike = 0;
  writer_.on_slice(passed);
}

std::string Contract::common_part(const Slice& slice) {
  std::string common(slice.name);
  common += static_cast<char>(slice.category);
  for (size_t i = 0; i < slice.num_alike_arguments; ++i) {
    const Argument& argument = slice.arguments[i];
    common.append(1, '\0').append(argument.key).append(1, static_cast<char>(argument.kind));
    common.append(std::to_string(argument.number)).append(argument.text);
  }
  return common;
}

void Contract::check_alike(const Slice& slice) {
  if (slice.alike == 0) return;
  require(slice.num_alike_arguments <= slice.num_arguments, "more arguments alike than there are");
  const auto [known, is_new] = alike_.try_emplace(slice.alike, common_part(slice));
  require(is_new || known->second == common_part(slice), "slices said to be alike that are not");
}

void Contract::check_flows(const Slice& slice) {
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) {
    require(slice.first_flow_out != 0 && flows_out_.insert(slice.first_flow_out + i).second, "an arrow begun twice");
  }
  require(slice.flow_in == 0 || flows_in_.insert(slice.flow_in).second, "an arrow ended twice");
  for (uint64_t i = 0; i < slice.num_waits_out; ++i) {
    require(slice.first_wait_out != 0 && flows_out_.insert(slice.first_wait_out + i).second, "an arrow begun twice");
    held_up_[slice.first_wait_out + i] += slice.start_ns + slice.duration_ns;
  }
  if (slice.wait_in != 0) {
    require(flows_in_.insert(slice.wait_in).second, "an arrow ended twice");
    held_up_[slice.wait_in] -= slice.start_ns + slice.duration_ns;
  }
  require(slice.num_waits_out == 0 || slice.duration_ns > 1, "a wait's arrow that starts nowhere");
  require(slice.wait_in == 0 || slice.duration_ns > 0, "a wait's arrow that ends nowhere");
}

void Contract::on_counter_track(const draw::CounterTrack& counter) {
  require(pids_.count(counter.pid) == 1, "a counter of a process that was not announced");
  const CounterState state{counter.pid, std::string(counter.name), std::string(counter.unit)};
  require(counters_.try_emplace(counter.id, state).second, "a counter's number that comes twice");
  writer_.on_counter_track(counter);
}

void Contract::on_value(const draw::Value& value) {
  const auto found = counters_.find(value.counter_id);
  require(found != counters_.end(), "a value of an unknown counter");
  CounterState& counter = found->second;
  require(counter.pid == value.pid && counter.name == value.counter_name && counter.unit == value.unit,
          "a value whose counter is called something else");
  require(is_time(value.time_ns) && value.time_ns > counter.last_ns, "a value that is not later than the one before");
  counter.last_ns = value.time_ns;
  ++values_;
  writer_.on_value(value);
}

void Contract::on_instant(const draw::Instant& instant) {
  require(begun_ && is_time(instant.time_ns), "an instant outside the time axis");
  writer_.on_instant(instant);
}

void Contract::on_end(const draw::Summary& summary) {
  require(begun_ && !ended_, "End without Begin");
  ended_ = true;
  for (const auto& [tid, track] : tracks_) require(pids_.count(tid) == 0, "a tid that is also a pid");
  require(flows_in_ == flows_out_, "an arrow with one end");
  for (const auto& [arrow, advance_ns] : held_up_) require(advance_ns <= 0, "an activity that held up no wait");
  require(summary.slices == slices_ && summary.values == values_ && summary.flows == flows_out_.size(),
          "figures that are not what was drawn");
  require(several_ || announced_.slices <= slices_, "fewer slices than announced");
  writer_.on_end(summary);
}

}  // namespace collector::fuzz
