// A visitor between the drawing of a step and a writer, which checks the guarantees of events.h for every writer.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "draw/events.h"

namespace collector::fuzz {

class Contract : public draw::TraceVisitor {
 public:
  // Whether on_begin announces everything that follows, which it does not in a file of several steps.
  enum class Steps { kOne, kSeveral };
  // `alike`: whether the writer learns which slices are alike. The file must be the same if it does not.
  enum class Alike { kGiven, kHidden };

  Contract(draw::TraceVisitor& writer, Steps steps, Alike alike)
      : writer_(writer), several_(steps == Steps::kSeveral), hides_alike_(alike == Alike::kHidden) {}

  void on_begin(const draw::Summary& summary) override;
  void on_process(const draw::Process& process) override;
  void on_track(const draw::Track& track) override;
  void on_slice(const draw::Slice& slice) override;
  void on_counter_track(const draw::CounterTrack& counter) override;
  void on_value(const draw::Value& value) override;
  void on_instant(const draw::Instant& instant) override;
  void on_end(const draw::Summary& summary) override;

  uint64_t slices() const { return slices_; }

 private:
  struct TrackState {
    uint32_t pid;
    bool nests;
    int64_t last_start_ns = 0;
    std::vector<int64_t> ends;  // of open slices, innermost last
  };
  struct CounterState {
    uint32_t pid;
    std::string name, unit;
    int64_t last_ns = -1;
  };

  // Name, category and shared arguments of alike slices.
  static std::string common_part(const draw::Slice& slice);
  void check_alike(const draw::Slice& slice);
  void check_flows(const draw::Slice& slice);

  draw::TraceVisitor& writer_;
  bool several_, hides_alike_;
  bool begun_ = false;
  bool ended_ = false;
  uint64_t slices_ = 0;
  uint64_t values_ = 0;
  draw::Summary announced_;
  std::set<uint32_t> pids_;
  std::unordered_map<uint32_t, TrackState> tracks_;
  std::unordered_map<uint32_t, CounterState> counters_;
  std::unordered_map<uint32_t, std::string> alike_;
  std::set<uint64_t> flows_out_, flows_in_;
  std::unordered_map<uint64_t, int64_t> held_up_;  // arrow of a wait -> the activity's end minus the wait's
};

}  // namespace collector::fuzz
