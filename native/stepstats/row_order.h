// The order of rows, and look-ups of rows of one table by keys of another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace collector::stepstats {

constexpr uint32_t kNoNumber = std::numeric_limits<uint32_t>::max();

// The stable order of `size` rows. The rows form few sorted runs, one per stream, so the runs are found and merged.
template <typename Less>
std::vector<uint32_t> stable_order(size_t size, Less less) {
  std::vector<uint32_t> order(size);
  for (size_t i = 0; i < size; ++i) order[i] = static_cast<uint32_t>(i);
  std::vector<size_t> runs{0};
  for (size_t i = 1; i < size; ++i) {
    if (less(static_cast<uint32_t>(i), static_cast<uint32_t>(i - 1))) runs.push_back(i);
  }
  runs.push_back(size);
  std::vector<uint32_t> merged(runs.size() > 2 ? size : 0);
  while (runs.size() > 2) {
    std::vector<size_t> fewer{0};
    for (size_t run = 0; run + 1 < runs.size(); run += 2) {
      const size_t middle = runs[run + 1];
      const size_t end = run + 2 < runs.size() ? runs[run + 2] : middle;
      const auto at = [&order](size_t place) { return order.begin() + static_cast<std::ptrdiff_t>(place); };
      std::merge(at(runs[run]), at(middle), at(middle), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(runs[run]), less);
      fewer.push_back(end);
    }
    order.swap(merged);
    runs.swap(fewer);
  }
  return order;
}

// The last number that was set for each key. Key 0 is never found. Ids are usually consecutive, so an array indexed by
// id is used; otherwise the keys are sorted.
class NumberByKey {
 public:
  template <typename KeyOf>
  NumberByKey(size_t size, KeyOf key_of) {
    uint64_t largest = 0;
    smallest_ = std::numeric_limits<uint64_t>::max();
    for (size_t row = 0; row < size; ++row) {
      const uint64_t key = key_of(row);
      if (key == 0) continue;
      smallest_ = std::min(smallest_, key);
      largest = std::max(largest, key);
    }
    if (largest == 0) return;
    is_dense_ = largest - smallest_ < 4 * size + 4096;
    if (is_dense_) dense_.assign(largest - smallest_ + 1, kNoNumber);
  }

  void set(uint64_t key, uint32_t number) {
    if (key == 0) return;
    if (is_dense_)
      dense_[key - smallest_] = number;
    else
      sparse_[key] = number;
  }

  uint32_t find(uint64_t key) const {
    if (key == 0) return kNoNumber;
    if (is_dense_) return key - smallest_ < dense_.size() ? dense_[key - smallest_] : kNoNumber;
    const auto found = sparse_.find(key);
    return found == sparse_.end() ? kNoNumber : found->second;
  }

 private:
  uint64_t smallest_ = 0;
  bool is_dense_ = false;
  std::vector<uint32_t> dense_;
  std::unordered_map<uint64_t, uint32_t> sparse_;
};

}  // namespace collector::stepstats
