#include "contract.h"

#include "checks.h"

namespace collector::fuzz {
namespace {

using convert::Argument;
using convert::Slice;

constexpr int64_t kLargestTimeNs = int64_t{1} << 53;

bool IsTime(int64_t time_ns) { return time_ns >= 0 && time_ns <= kLargestTimeNs; }

}  // namespace

void Contract::Begin(const convert::Summary& summary) {
  Require(!begun_, "Begin twice");
  begun_ = true;
  announced_ = summary;
  writer_.Begin(summary);
}

void Contract::OnProcess(const convert::Process& process) {
  Require(begun_ && !ended_, "a process outside Begin and End");
  Require(process.pid != 0 && pids_.insert(process.pid).second, "a pid that comes twice");
  Require(!process.name.empty(), "a process without a name");
  writer_.OnProcess(process);
}

void Contract::OnTrack(const convert::Track& track) {
  Require(pids_.count(track.pid) == 1, "a track of a process that was not told");
  Require(track.tid != 0 && !track.name.empty(), "a track without a number or name");
  Require(tracks_.try_emplace(track.tid, TrackState{track.pid, track.nests, 0, {}}).second, "a tid that comes twice");
  writer_.OnTrack(track);
}

void Contract::OnSlice(const Slice& slice) {
  const auto found = tracks_.find(slice.tid);
  Require(found != tracks_.end() && found->second.pid == slice.pid, "a slice on no track of its process");
  const int64_t end_ns = slice.start_ns + slice.duration_ns;
  Require(slice.duration_ns >= 0 && IsTime(slice.start_ns) && IsTime(end_ns), "a slice outside the time axis");
  Require(several_ || end_ns <= announced_.end_ns, "a slice beyond the end that was announced");
  TrackState& track = found->second;
  Require(slice.start_ns >= track.last_start_ns, "a slice that starts before the one before it");
  track.last_start_ns = slice.start_ns;
  while (!track.ends.empty() && track.ends.back() <= slice.start_ns) track.ends.pop_back();
  Require(track.ends.empty() || (track.nests && end_ns <= track.ends.back()), "slices that overlap on one track");
  track.ends.push_back(end_ns);
  Require(!slice.name.empty(), "a slice without a name");
  Require(static_cast<size_t>(slice.category) < convert::kCategories, "a slice of no category");
  CheckAlike(slice);
  CheckFlows(slice);
  ++slices_;
  Slice told = slice;
  if (hides_alike_) told.alike = 0;
  writer_.OnSlice(told);
}

std::string Contract::Common(const Slice& slice) {
  std::string common(slice.name);
  common += static_cast<char>(slice.category);
  for (size_t i = 0; i < slice.num_alike_arguments; ++i) {
    const Argument& argument = slice.arguments[i];
    common.append(1, '\0').append(argument.key).append(1, static_cast<char>(argument.kind));
    common.append(std::to_string(argument.number)).append(argument.text);
  }
  return common;
}

void Contract::CheckAlike(const Slice& slice) {
  if (slice.alike == 0) return;
  Require(slice.num_alike_arguments <= slice.num_arguments, "more arguments alike than there are");
  const auto [known, is_new] = alike_.try_emplace(slice.alike, Common(slice));
  Require(is_new || known->second == Common(slice), "slices said to be alike that are not");
}

void Contract::CheckFlows(const Slice& slice) {
  for (uint64_t i = 0; i < slice.num_flows_out; ++i) {
    Require(slice.first_flow_out != 0 && flows_out_.insert(slice.first_flow_out + i).second, "an arrow begun twice");
  }
  Require(slice.flow_in == 0 || flows_in_.insert(slice.flow_in).second, "an arrow ended twice");
}

void Contract::OnCounterTrack(const convert::CounterTrack& counter) {
  Require(pids_.count(counter.pid) == 1, "a counter of a process that was not told");
  const CounterState state{counter.pid, std::string(counter.name), std::string(counter.unit)};
  Require(counters_.try_emplace(counter.id, state).second, "a counter's number that comes twice");
  writer_.OnCounterTrack(counter);
}

void Contract::OnValue(const convert::Value& value) {
  const auto found = counters_.find(value.counter_id);
  Require(found != counters_.end(), "a value of an unknown counter");
  CounterState& counter = found->second;
  Require(counter.pid == value.pid && counter.name == value.counter_name && counter.unit == value.unit,
          "a value whose counter is called something else");
  Require(IsTime(value.time_ns) && value.time_ns > counter.last_ns, "a value that is not later than the one before");
  counter.last_ns = value.time_ns;
  ++values_;
  writer_.OnValue(value);
}

void Contract::OnInstant(const convert::Instant& instant) {
  Require(begun_ && IsTime(instant.time_ns), "an instant outside the time axis");
  writer_.OnInstant(instant);
}

void Contract::End(const convert::Summary& summary) {
  Require(begun_ && !ended_, "End without Begin");
  ended_ = true;
  for (const auto& [tid, track] : tracks_) Require(pids_.count(tid) == 0, "a tid that is also a pid");
  Require(flows_in_ == flows_out_, "an arrow with one end");
  Require(summary.slices == slices_ && summary.values == values_ && summary.flows == flows_out_.size(),
          "figures that are not what was told");
  Require(several_ || announced_.slices == slices_, "another number of slices than announced");
  writer_.End(summary);
}

}  // namespace collector::fuzz
