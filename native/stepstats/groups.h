// The devices of a step in the order in which they are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "stepstats/devices.h"
#include "stepstats/step_stats.h"

namespace collector::convert {

// The devices of one name, of which well-made messages have one.
struct Group {
  std::string_view device;
  DeviceName name;
  std::vector<const Device*> parts;
  uint64_t first_ordinal = 0;  // of its nodes, over all groups
  uint32_t rank = 0;           // number of the prefix
  bool takes_arrows = false;
  bool counts_copies = false;
  bool has_threads = false;  // nodes say on which thread they ran
  bool in_order = true;      // of time
  // Of the nodes, where they themselves have none, as `stream:all` has them; empty where it has none either.
  std::vector<std::string_view> activities;
};

// What hosts did first, then what each GPU did. Left out are devices that repeat what others hold, and those for which
// keep_device, if there is one, says no.
std::vector<Group> make_groups(const StepStats& step, const std::function<bool(std::string_view device)>& keep_device);

}  // namespace collector::convert
