// The devices of a step, in the order in which they are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stepstats/devices.h"
#include "stepstats/step_stats.h"

namespace collector::stepstats {

// The devices with one name. Well-formed messages have one device per name.
struct Group {
  std::string_view device;
  DeviceName name;
  std::vector<const Device*> parts;
  uint64_t first_ordinal = 0;  // of its first node, over all groups
  uint32_t rank = 0;           // index of the prefix
  bool takes_arrows = false;
  bool counts_copies = false;
  bool has_threads = false;  // whether nodes have thread ids
  bool in_order = true;      // whether the nodes are sorted by time
  // The activities of nodes that do not contain their own, from their twins under `stream:all`. Empty if those have
  // none.
  std::vector<std::string_view> activities;
  std::unordered_map<uint32_t, uint32_t> processes;  // of threads, as their first calls state them
};

// The devices of hosts, followed by those of each GPU. Devices that repeat the nodes of others are left out, and so are
// those that keep_device, if it is given, rejects.
std::vector<Group> make_groups(const StepStats& step, const std::function<bool(std::string_view device)>& keep_device);

}  // namespace collector::stepstats
