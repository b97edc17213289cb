// Ops, kernels and copies that come again and again: their events, but for where and when, are written once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "convert/fragment.h"
#include "convert/sampled_hash.h"
#include "convert/step_stats.h"

namespace collector::convert {

// What the events of nodes with one name and label have in common.
struct Region {
  Fragment start;           // up to the op
  Fragment end;             // from the arguments on
  std::string_view inputs;  // as OpLabel::inputs
};

// Remembers the regions of names and labels that came more than once, each in the one place that a hash of them gives
// it: whatever comes there twice in a row takes it over. Where no two are alike, only the hashes, which are few and
// near, are looked at. Views into the step's bytes are kept.
class RepeatedRegions {
 public:
  // The region of a node that says what another has said lately, filled in by write(region); else null.
  template <typename Write>
  const Region* Find(const Node& node, bool from_tracer, Write write) {
    const uint32_t hash = SampledHash(node.name, node.label);
    uint32_t& last_hash = last_hashes_[hash % kPlaces];
    if (last_hash != hash) {
      last_hash = hash;
      return nullptr;
    }
    Place& place = places_[hash % kPlaces];
    if (place.from_tracer != from_tracer || place.name != node.name || place.label != node.label) {
      place.name = node.name;
      place.label = node.label;
      place.from_tracer = from_tracer;
      place.is_written = false;
      return nullptr;
    }
    if (!place.is_written) write(place.region);
    place.is_written = true;
    return &place.region;
  }

 private:
  static constexpr size_t kPlaces = 1024;
  struct Place {
    std::string_view name;
    std::string_view label;
    bool from_tracer = false;
    bool is_written = false;
    Region region;
  };

  std::array<uint32_t, kPlaces> last_hashes_{};
  std::vector<Place> places_ = std::vector<Place>(kPlaces);
};

}  // namespace collector::convert
