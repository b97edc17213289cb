// Which call caused which activity: what the arrows join.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "stepstats/activity.h"
#include "stepstats/name_table.h"
#include "stepstats/step_stats.h"
#include "stepstats/waiting_names.h"

namespace collector::convert {

// Activities and calls find each other by the first of these that the activity has: a correlation id; the thread and
// time of the launch, which are those of the call; or, as in TensorFlow's own recordings, the op's name, where the call
// is the last op of that name that started before the activity.
//
// To be filled in this order: add_activity for all, add_call for all, join, CountActivity for all; then flows_from each
// call that is drawn before flow_to each of its activities. "All" are those to be drawn. Ordinals are numbers of nodes.
class Launches {
 public:
  // `rank` keeps apart the ids of processes that share a message.
  void add_activity(const Node& node, const Activity& activity, uint32_t rank);
  void add_call(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank);
  void join();
  void count_named(const Node& node, const Activity& activity, const Span& span, uint64_t ordinal, uint32_t rank);

  // Whether there are no activities at all.
  bool empty() const { return launches_.empty() && names_.size() == 0; }
  // Whether calls are to be found by name.
  bool has_named() const { return !calls_.empty(); }
  // Gives back the memory that only finding by name needs: after the last count_named.
  void forget_names();

  struct Flows {
    uint64_t first = 0;
    uint64_t number = 0;
  };
  // The arrows that start at a call; takes their ids from next_flow_id.
  Flows flows_from(uint64_t ordinal, uint64_t& next_flow_id);
  // The arrow that ends at an activity; 0: none.
  uint64_t flow_to(const Node& node, uint64_t ordinal, uint32_t rank);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Launch {
    uint64_t key = 0;
    uint64_t caller = 0;  // its ordinal + 1; 0: not seen
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

  // The two ways to mean a launch by number; 0: the node does not say.
  static uint64_t correlation_key(const Node& node, uint32_t rank);
  static uint64_t time_key_of(uint32_t thread_id, int64_t start_ns, uint32_t rank);
  static uint64_t key_of_activity(const Node& node, uint32_t rank);
  static std::string_view call_name(const Activity& activity);

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
  // Those with a call.
  uint32_t keyed_launch_of(const Node& node, uint32_t rank) const;
  uint32_t named_launch_of(const Activity& activity, const Span& span) const;

  std::vector<uint32_t> launch_of_;                           // of calls, by ordinal
  std::vector<std::pair<uint64_t, uint32_t>> more_launches_;  // of calls with several; after join by ordinal
  bool has_time_keys_ = false;
  std::vector<uint32_t> slots_;  // open addressing: index of a launch, or kNone
  std::vector<Launch> launches_;
  NameTable names_;                     // of ops that activities without a key name
  WaitingNames<Call> waiting_{names_};  // of add_call
  std::vector<NamedCall> calls_;        // of these names; after join by name and start
  std::vector<uint32_t> named_launch_;  // of activities found by name, by ordinal from first_named_ on
  uint64_t first_named_ = 0;
  std::vector<uint32_t> first_call_;  // of each name, and the end
};

}  // namespace collector::convert
