// Caches the parsed names and labels of nodes, for all nodes that repeat them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "draw/events.h"
#include "stepstats/activity.h"
#include "stepstats/repeated_nodes.h"

namespace collector::draw {

// A node's parsed name and label, and the arguments that a slice gets from them.
struct Description {
  stepstats::Activity activity;
  std::list<std::string> texts;     // storage of texts that arguments refer to
  std::vector<Argument> arguments;  // first those of the labels, then those added for the current slice
  size_t num_label_arguments = 0;
  uint32_t alike = 0;         // same as Slice::alike
  bool has_own_keys = false;  // whether an argument of the label has the name of an added argument
};

class RepeatedLabels {
 public:
  // The description of a node: a cached one, or one that describe(description) fills in.
  template <typename Describe>
  Description& find(const stepstats::Node& node, bool on_gpu, Describe describe) {
    const auto fill = [&describe](Description& description) {
      description.arguments.clear();
      describe(description);
      description.num_label_arguments = description.arguments.size();
    };
    Description* const again = repeated_.find(node, on_gpu, [&](Description& description) {
      fill(description);
      description.alike = ++last_alike_;
    });
    if (again == nullptr) {
      fill(fresh_);
      return fresh_;
    }
    again->arguments.resize(again->num_label_arguments);
    return *again;
  }

 private:
  stepstats::RepeatedNodes<Description> repeated_;
  Description fresh_;
  uint32_t last_alike_ = 0;
};

}  // namespace collector::draw
