#include "stepstats/distinct_rows.h"

#include <algorithm>
#include <array>
#include <limits>

namespace collector::stepstats {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr size_t kRowsAtOnce = 1024;  // their hashes fit into the L1 cache

// Entries by hash, with at most half of the slots in use.
class PlaceTable {
 public:
  // The place of the entry with this hash that `is_alike` accepts, or kNone after a new entry was added.
  template <typename IsAlike>
  uint32_t find_or_insert(uint64_t hash, const IsAlike& is_alike) {
    for (size_t at = slot_of(hash);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == kNone) {
        slots_[at] = static_cast<uint32_t>(hashes_.size());
        hashes_.push_back(hash);
        if (2 * hashes_.size() > slots_.size()) grow();
        return kNone;
      }
      if (hashes_[slots_[at]] == hash && is_alike(slots_[at])) return slots_[at];
    }
  }

 private:
  size_t slot_of(uint64_t hash) const { return static_cast<size_t>(hash >> 32) & (slots_.size() - 1); }

  void grow() {
    slots_.assign(2 * slots_.size(), kNone);
    for (uint32_t place = 0; place < hashes_.size(); ++place) {
      size_t at = slot_of(hashes_[place]);
      while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = place;
    }
  }

  std::vector<uint32_t> slots_ = std::vector<uint32_t>(64, kNone);
  std::vector<uint64_t> hashes_;  // by place
};

}  // namespace

DistinctRows find_distinct_rows(const std::vector<ColumnView>& columns, size_t num_rows) {
  DistinctRows distinct;
  std::vector<ColumnView> varying;
  std::copy_if(columns.begin(), columns.end(), std::back_inserter(varying),
               [num_rows](const ColumnView& column) { return !column.is_constant(num_rows); });
  if (varying.empty()) {
    distinct.places.assign(num_rows, 0);
    if (num_rows != 0) distinct.firsts.push_back(0);
    return distinct;
  }
  distinct.places.reserve(num_rows);
  PlaceTable table;
  std::array<uint64_t, kRowsAtOnce> hashes;
  for (size_t first = 0; first < num_rows; first += kRowsAtOnce) {
    const size_t last = std::min(first + kRowsAtOnce, num_rows);
    hashes.fill(0);
    for (const ColumnView& column : varying) {
      uint64_t* hash = hashes.data();
      column.for_each(first, last, [&hash](int64_t value) {
        const uint64_t mixed = (*hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
        *hash++ = mixed ^ mixed >> 29;
      });
    }
    for (size_t row = first; row < last; ++row) {
      const uint32_t place = table.find_or_insert(hashes[row - first], [&](uint32_t known) {
        return std::all_of(varying.begin(), varying.end(), [&, other = distinct.firsts[known]](const ColumnView& each) {
          return each[row] == each[other];
        });
      });
      distinct.places.push_back(place == kNone ? static_cast<uint32_t>(distinct.firsts.size()) : place);
      if (place == kNone) distinct.firsts.push_back(static_cast<uint32_t>(row));
    }
  }
  return distinct;
}

}  // namespace collector::stepstats
