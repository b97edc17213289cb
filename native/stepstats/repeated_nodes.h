// A cache of values derived from the names and labels of nodes, for nodes that repeat them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stepstats/sampled_hash.h"
#include "stepstats/step_stats.h"

namespace collector::stepstats {

// Keeps one value per hash of name and label. A node replaces the value when the same hash comes twice in a row. If no
// two nodes are equal, as with host ops, only the hashes are read, which are few and close together. The cache holds
// views of the step's bytes.
template <typename Value>
class RepeatedNodes {
 public:
  // The value of an equal node seen before, computed by make(value) from the previous contents of the place; null if
  // there was none.
  template <typename Make>
  Value* find(const Node& node, bool on_gpu, Make make) {
    const uint32_t hash = sampled_hash(node.name, node.activity.empty() ? node.label : node.activity);
    uint32_t& last_hash = last_hashes_[hash % kPlaces];
    if (last_hash != hash) {
      last_hash = hash;
      return nullptr;
    }
    Place& place = places_[hash % kPlaces];
    if (place.on_gpu != on_gpu || place.name != node.name || place.label != node.label ||
        place.activity != node.activity || place.op_end != node.op_end) {
      place.name = node.name;
      place.label = node.label;
      place.activity = node.activity;
      place.op_end = node.op_end;
      place.on_gpu = on_gpu;
      place.is_made = false;
      return nullptr;
    }
    if (!place.is_made) {
      if (place.value == nullptr) place.value = std::make_unique<Value>();
      make(*place.value);
      place.is_made = true;
    }
    return place.value.get();
  }

 private:
  static constexpr size_t kPlaces = 1024;
  struct Place {
    std::string_view name;
    std::string_view label;
    std::string_view activity;
    uint32_t op_end = 0;
    bool on_gpu = false;
    bool is_made = false;
    std::unique_ptr<Value> value;
  };

  std::array<uint32_t, kPlaces> last_hashes_{};
  std::vector<Place> places_ = std::vector<Place>(kPlaces);
};

}  // namespace collector::stepstats
