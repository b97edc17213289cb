// What is made of nodes' names and labels, remembered for the nodes that say the same again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stepstats/sampled_hash.h"
#include "stepstats/step_stats.h"

namespace collector::convert {

// Remembers a value for each name and label that came more than once lately, in the one place that a hash of them gives
// it: whatever comes there twice in a row takes it over. Where no two are alike, as host ops have them, only the
// hashes, which are few and near, are looked at. Views into the step's bytes are kept.
template <typename Value>
class RepeatedNodes {
 public:
  // The value of a node that says what another has said, made by make(value) from whatever was there before; else null.
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
        place.activity != node.activity) {
      place.name = node.name;
      place.label = node.label;
      place.activity = node.activity;
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
    bool on_gpu = false;
    bool is_made = false;
    std::unique_ptr<Value> value;
  };

  std::array<uint32_t, kPlaces> last_hashes_{};
  std::vector<Place> places_ = std::vector<Place>(kPlaces);
};

}  // namespace collector::convert
