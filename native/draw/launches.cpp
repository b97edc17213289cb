#include "draw/launches.h"

#include <algorithm>
#include <utility>

namespace collector::draw {

namespace {

constexpr size_t kFewestSlots = 64;

}  // namespace

using stepstats::Activity;
using stepstats::NameTable;
using stepstats::Node;
using stepstats::Span;

uint64_t Launches::correlation_key(const Node& node, uint32_t rank) {
  if (node.correlation_id == 0) return 0;
  return uint64_t{1} << 63 | static_cast<uint64_t>(rank) << 32 | node.correlation_id;
}

uint64_t Launches::time_key_of(uint32_t thread_id, int64_t start_ns, uint32_t rank) {
  if (start_ns == 0) return 0;
  // A wall time in ns has 61 bits; threads whose calls start in the same nanosecond must not share a key.
  const uint64_t place = (static_cast<uint64_t>(rank) << 32 | thread_id) * 0x9E3779B97F4A7C15u;
  return (static_cast<uint64_t>(start_ns) ^ place) & ~(uint64_t{1} << 63);
}

uint64_t Launches::key_of_activity(const Node& node, uint32_t rank) {
  const uint64_t key = correlation_key(node, rank);
  return key != 0 ? key : time_key_of(node.thread_id, scheduled_ns_of(node), rank);
}

std::string_view Launches::call_name(const Activity& activity) {
  return activity.op.empty() ? activity.name : activity.op;
}

size_t Launches::home_slot(uint64_t key) const {
  // Ids are usually consecutive: sixteen consecutive ids share a cache line.
  const uint64_t mixed = (key >> 4) * 0x9E3779B97F4A7C15u;
  return ((mixed ^ mixed >> 32) << 4 | (key & 15)) & (slots_.size() - 1);
}

size_t Launches::slot_of(uint64_t key) const {
  size_t at = home_slot(key);
  while (slots_[at] != kNone && launches_[slots_[at]].key != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

uint32_t Launches::find(uint64_t key) const { return key == 0 || slots_.empty() ? kNone : slots_[slot_of(key)]; }

Launches::Launch& Launches::insert(uint64_t key) {
  if (3 * launches_.size() >= 2 * slots_.size()) {
    size_t num_slots = slots_.empty() ? kFewestSlots : 2 * slots_.size();
    while (2 * num_slots <= 3 * num_expected_) num_slots *= 2;
    slots_.assign(num_slots, kNone);
    for (uint32_t launch = 0; launch < launches_.size(); ++launch) slots_[slot_of(launches_[launch].key)] = launch;
  }
  const size_t at = slot_of(key);
  if (slots_[at] == kNone) {
    slots_[at] = static_cast<uint32_t>(launches_.size());
    launches_.emplace_back().key = key;
  }
  return launches_[slots_[at]];
}

void Launches::add_activity(const Node& node, const Activity& activity, uint32_t rank) {
  const uint64_t key = key_of_activity(node, rank);
  if (key != 0) ++insert(key).num_activities;
  if (node.correlation_id != 0) return;
  has_time_keys_ = has_time_keys_ || key != 0;
  names_.insert(call_name(activity));
}

void Launches::add_call(const Node& node, const Span& span, uint64_t ordinal, uint32_t rank) {
  const uint64_t time_key = has_time_keys_ ? time_key_of(node.thread_id, span.start_ns, rank) : 0;
  const Call call{{correlation_key(node, rank), time_key}, span.start_ns, ordinal};
  if (!slots_.empty()) {
    for (const uint64_t key : call.keys) __builtin_prefetch(&slots_[home_slot(key)]);
  }
  const bool needs_name = names_.size() != 0;
  if (waiting_.push(needs_name ? node.name : std::string_view(), call)) settle_calls();
}

void Launches::settle_calls() {
  waiting_.drain([this](const auto& item) {
    const Call& call = item.payload;
    // Several calls may have one correlation id, e.g. a runtime call and the driver call inside it; the first to start
    // counts.
    for (const uint64_t key : call.keys) {
      const uint32_t launch = find(key);
      if (launch == kNone || launches_[launch].caller != 0) continue;
      launches_[launch].caller = call.ordinal + 1;
      note_caller(call.ordinal, launch);
    }
    const uint32_t name = names_.find(item.name, item.hash);
    if (name != NameTable::kNone) calls_.push_back({name, call.start_ns, call.ordinal, kNone});
  });
}

void Launches::note_caller(uint64_t ordinal, uint32_t launch) {
  if (launch_of_.size() <= ordinal) launch_of_.resize(ordinal + ordinal / 2 + 64, kNone);
  if (launch_of_[ordinal] == kNone) {
    launch_of_[ordinal] = launch;
  } else {
    more_launches_.emplace_back(ordinal, launch);
  }
}

void Launches::join() {
  settle_calls();
  first_call_.assign(names_.size() + 1, 0);
  for (const NamedCall& call : calls_) ++first_call_[call.name + 1];
  for (size_t name = 0; name < names_.size(); ++name) first_call_[name + 1] += first_call_[name];
  std::vector<NamedCall> by_name(calls_.size());
  std::vector<uint32_t> next(first_call_.begin(), first_call_.end() - 1);
  for (const NamedCall& call : calls_) by_name[next[call.name]++] = call;
  calls_ = std::move(by_name);
  for (size_t name = 0; name < names_.size(); ++name) {
    std::sort(calls_.begin() + first_call_[name], calls_.begin() + first_call_[name + 1],
              [](const NamedCall& a, const NamedCall& b) {
                return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.ordinal < b.ordinal;
              });
  }
  for (NamedCall& call : calls_) {
    call.launch = static_cast<uint32_t>(launches_.size());
    launches_.emplace_back().caller = call.ordinal + 1;
    note_caller(call.ordinal, call.launch);
  }
  std::stable_sort(more_launches_.begin(), more_launches_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (launch_of_.empty()) {  // no call is drawn, hence no arrow
    launches_ = {};
    slots_ = {};
    names_ = NameTable();
  }
}

uint32_t Launches::keyed_launch_of(const Node& node, uint32_t rank) const {
  const uint32_t launch = find(key_of_activity(node, rank));
  return launch != kNone && launches_[launch].caller != 0 ? launch : kNone;
}

uint32_t Launches::named_launch_of(const Activity& activity, const Span& span) const {
  const uint32_t name = names_.find(call_name(activity));
  const auto first = calls_.begin() + first_call_[name];
  const auto after = std::upper_bound(first, calls_.begin() + first_call_[name + 1], span.start_ns,
                                      [](int64_t start_ns, const NamedCall& call) { return start_ns < call.start_ns; });
  return after == first ? kNone : (after - 1)->launch;
}

void Launches::count_named(const Node& node, const Activity& activity, const Span& span, uint64_t ordinal,
                           uint32_t rank) {
  if (node.correlation_id != 0 || keyed_launch_of(node, rank) != kNone) return;
  const uint32_t launch = named_launch_of(activity, span);
  if (launch == kNone) return;
  ++launches_[launch].num_activities;
  if (named_launch_.empty()) first_named_ = ordinal;
  const uint64_t index = ordinal - first_named_;
  if (named_launch_.size() <= index) named_launch_.resize(index + index / 2 + 64, kNone);
  named_launch_[index] = launch;
}

void Launches::forget_names() {
  names_ = NameTable();
  calls_ = {};
  first_call_ = {};
}

Launches::Flows Launches::flows_from(uint64_t ordinal, uint64_t& next_flow_id) {
  Flows flows{next_flow_id, 0};
  if (ordinal >= launch_of_.size() || launch_of_[ordinal] == kNone) return flows;
  const auto take = [&](Launch& launch) {
    launch.first_flow = next_flow_id;
    next_flow_id += launch.num_activities;
    flows.number += launch.num_activities;
  };
  take(launches_[launch_of_[ordinal]]);
  auto more = std::lower_bound(more_launches_.begin(), more_launches_.end(), ordinal,
                               [](const auto& pair, uint64_t wanted) { return pair.first < wanted; });
  for (; more != more_launches_.end() && more->first == ordinal; ++more) take(launches_[more->second]);
  return flows;
}

uint64_t Launches::flow_to(const Node& node, uint64_t ordinal, uint32_t rank) {
  uint32_t index = keyed_launch_of(node, rank);
  if (index == kNone && ordinal >= first_named_ && ordinal - first_named_ < named_launch_.size()) {
    index = named_launch_[ordinal - first_named_];
  }
  if (index == kNone) return 0;
  Launch& launch = launches_[index];
  if (launch.first_flow == 0) return 0;  // its call is not drawn
  return launch.first_flow + launch.num_given++;
}

}  // namespace collector::draw
