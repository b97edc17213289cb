// Assigns activities to lanes (rows): each to the first lane whose last activity has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace collector::draw {

// The ends of the lanes' last activities in a tournament tree: a complete binary tree with the ends as leaves and the
// minimum of both children in each inner node, so that the first lane that ends before a time is found in O(log lanes).
class Lanes {
 public:
  using Time = int64_t;
  using Lane = uint32_t;

  // Adds an activity that ends at `end` to the first lane whose end is below `before`, or to a new lane.
  Lane place(Time before, Time end) {
    Lane lane = size_;
    if (tree_[1] < before) {
      size_t at = 1;
      while (at < capacity_) at = 2 * at + (tree_[2 * at] < before ? 0 : 1);
      lane = static_cast<Lane>(at - capacity_);
    } else {
      if (size_ == capacity_) grow();
      ++size_;
    }
    set(lane, end);
    return lane;
  }

  // The number of lanes in use.
  Lane size() const { return size_; }

  void clear() { *this = Lanes(); }

 private:
  static constexpr Time kNoLane = std::numeric_limits<Time>::max();  // not below any time

  void set(Lane lane, Time end) {
    size_t at = capacity_ + lane;
    tree_[at] = end;
    for (at /= 2; at > 0; at /= 2) {
      const Time first = tree_[2 * at] < tree_[2 * at + 1] ? tree_[2 * at] : tree_[2 * at + 1];
      if (tree_[at] == first) break;
      tree_[at] = first;
    }
  }

  void grow() {
    std::vector<Time> ends(tree_.begin() + static_cast<std::ptrdiff_t>(capacity_), tree_.end());
    capacity_ *= 2;
    tree_.assign(2 * capacity_, kNoLane);
    for (size_t lane = 0; lane < ends.size(); ++lane) tree_[capacity_ + lane] = ends[lane];
    for (size_t at = capacity_ - 1; at > 0; --at) {
      tree_[at] = tree_[2 * at] < tree_[2 * at + 1] ? tree_[2 * at] : tree_[2 * at + 1];
    }
  }

  size_t capacity_ = 1;  // a power of two
  Lane size_ = 0;
  std::vector<Time> tree_ = std::vector<Time>(2, kNoLane);  // [1] is the root, [capacity_ + i] is lane i
};

}  // namespace collector::draw
