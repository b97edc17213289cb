// Finds the call that launched each activity; the arrows connect both.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "stepstats/activity.h"
#include "stepstats/name_table.h"
#include "stepstats/step_stats.h"
#include "stepstats/waiting_names.h"

namespace collector::draw {

// An activity is matched with its call by the first of these keys that it has: a correlation id; the thread and time of
// the launch, which are those of the call; or, in TensorFlow's own recordings, the op's name, which matches the last op
// of that name that started before the activity.
//
// Order of the calls: add_activity for all, add_call for all, join, count_named for all; then for each drawn call
// flows_from, before flow_to of its activities. "All" means all nodes that will be drawn. Ordinals are numbers of
// nodes.
class Launches {
 public:
  // Announces the largest number of activities, so that the table of keys is not built anew as it grows.
  void expect_activities(size_t number) { num_expected_ = number; }
  // `rank` distinguishes the ids of processes that share a message.
  void add_activity(const stepstats::Node& node, const stepstats::Activity& activity, uint32_t rank);
  void add_call(const stepstats::Node& node, const stepstats::Span& span, uint64_t ordinal, uint32_t rank);
  void join();
  void count_named(const stepstats::Node& node, const stepstats::Activity& activity, const stepstats::Span& span,
                   uint64_t ordinal, uint32_t rank);

  // Whether there are no activities.
  bool empty() const { return launches_.empty() && names_.size() == 0; }
  // Whether calls are matched by name.
  bool has_named() const { return !calls_.empty(); }
  // Releases the memory that only matching by name needs. Must be called after the last count_named.
  void forget_names();

  struct Flows {
    uint64_t first = 0;
    uint64_t number = 0;
  };
  // The arrows that start at a call; their ids are taken from next_flow_id.
  Flows flows_from(uint64_t ordinal, uint64_t& next_flow_id);
  // The arrow that ends at an activity; 0: none.
  uint64_t flow_to(const stepstats::Node& node, uint64_t ordinal, uint32_t rank);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Launch {
    uint64_t key = 0;
    uint64_t caller = 0;  // ordinal + 1; 0: not seen
    uint64_t first_flow = 0;
    uint32_t num_activities = 0;
    uint32_t num_given = 0;
  };
  struct NamedCall {
    uint32_t name;
    int64_t start_ns;
    uint64_t ordinal;
    uint32_t launch;
  };

  // The two numeric keys of a launch; 0 if the node does not have the key.
  static uint64_t correlation_key(const stepstats::Node& node, uint32_t rank);
  static uint64_t time_key_of(uint32_t thread_id, int64_t start_ns, uint32_t rank);
  static uint64_t key_of_activity(const stepstats::Node& node, uint32_t rank);
  static std::string_view call_name(const stepstats::Activity& activity);

  struct Call {
    uint64_t keys[2];
    int64_t start_ns;
    uint64_t ordinal;
  };

  void settle_calls();
  void note_caller(uint64_t ordinal, uint32_t launch);
  size_t home_slot(uint64_t key) const;
  size_t slot_of(uint64_t key) const;
  uint32_t find(uint64_t key) const;
  Launch& insert(uint64_t key);
  // The index of a launch that has a call.
  uint32_t keyed_launch_of(const stepstats::Node& node, uint32_t rank) const;
  uint32_t named_launch_of(const stepstats::Activity& activity, const stepstats::Span& span) const;

  std::vector<uint32_t> launch_of_;                           // of calls, by ordinal
  std::vector<std::pair<uint64_t, uint32_t>> more_launches_;  // of calls with several launches; by ordinal after join
  bool has_time_keys_ = false;
  size_t num_expected_ = 0;
  std::vector<uint32_t> slots_;  // open addressing: index of a launch, or kNone
  std::vector<Launch> launches_;
  stepstats::NameTable names_;                     // op names of activities without a numeric key
  stepstats::WaitingNames<Call> waiting_{names_};  // for add_call
  std::vector<NamedCall> calls_;                   // with these names; sorted by name and start after join
  std::vector<uint32_t> named_launch_;             // of activities matched by name, by ordinal from first_named_ on
  uint64_t first_named_ = 0;
  std::vector<uint32_t> first_call_;  // by name, and one entry for the end
};

}  // namespace collector::draw
