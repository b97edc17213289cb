// What nodes that say the same have in common: taken apart once, used for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "convert/activity.h"
#include "convert/events.h"
#include "convert/sampled_hash.h"

namespace collector::convert {

// A node's name and label taken apart, with the arguments that a slice has from them.
struct Description {
  Activity activity;
  std::vector<Argument> arguments;  // first those of the labels, then whatever the slice at hand adds
  size_t num_label_arguments = 0;
  uint32_t alike = 0;  // as Slice::alike
};

// Remembers the descriptions of names and labels that came more than once, each in the one place that a hash of them
// gives it: whatever comes there next takes it over. Labels of which no two are alike, as host ops have them, so cost
// little more than a glance. Views into the step's bytes are kept.
class RepeatedLabels {
 public:
  // The description of a node: a remembered one, or one that describe(description) has filled in.
  template <typename Describe>
  Description& Find(const Node& node, bool on_gpu, Describe describe) {
    Place& place = places_[SampledHash(node.name, node.label) % kPlaces];
    const bool again = place.on_gpu == on_gpu && place.name == node.name && place.label == node.label;
    if (!again) {
      place.name = node.name;
      place.label = node.label;
      place.on_gpu = on_gpu;
      place.is_described = false;
      fresh_.alike = 0;
      Fill(fresh_, describe);
      return fresh_;
    }
    if (!place.is_described) {
      if (place.description == nullptr) place.description = std::make_unique<Description>();
      place.description->alike = ++last_alike_;
      Fill(*place.description, describe);
      place.is_described = true;
    }
    place.description->arguments.resize(place.description->num_label_arguments);
    return *place.description;
  }

 private:
  static constexpr size_t kPlaces = 1024;
  struct Place {
    std::string_view name;
    std::string_view label;
    bool on_gpu = false;
    bool is_described = false;
    std::unique_ptr<Description> description;
  };

  template <typename Describe>
  static void Fill(Description& description, Describe describe) {
    description.arguments.clear();
    describe(description);
    description.num_label_arguments = description.arguments.size();
  }

  std::vector<Place> places_ = std::vector<Place>(kPlaces);
  Description fresh_;
  uint32_t last_alike_ = 0;
};

}  // namespace collector::convert
