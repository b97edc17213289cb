// Arrows between two nodes, which are found by the ordinals of the nodes at both ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collector::draw {

// Order of the calls: add for all arrows; then number, once; then from and to.
class Arrows {
 public:
  struct Arrow {
    uint64_t source;
    uint64_t target;
    uint64_t id;
  };

  // Adds an arrow. At most one may end at a node.
  void add(uint64_t source, uint64_t target) { arrows_.push_back({source, target, 0}); }
  // Gives each arrow an id, from next_id on; arrows with the same source have consecutive ids.
  void number(uint64_t& next_id);

  struct Ids {
    uint64_t first = 0;
    uint64_t number = 0;
  };
  // The arrows that start at a node.
  Ids from(uint64_t ordinal) const;
  // The arrow that ends at a node; 0: none.
  uint64_t to(uint64_t ordinal) const;
  // In the order of their ids.
  const std::vector<Arrow>& all() const { return arrows_; }

 private:
  std::vector<Arrow> arrows_;      // sorted by source after number
  std::vector<size_t> by_target_;  // indices of arrows
};

}  // namespace collector::draw
