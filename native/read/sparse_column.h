// A column of integers that only some rows of a table have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/blocks.h"
#include "store/chunks.h"

namespace collector::read {

// A bit for each row says whether it has a number. The numbers are stored one after the other, in four bytes each as
// long as all of them fit.
class SparseColumn {
 public:
  // `blocks` must outlive the column.
  explicit SparseColumn(store::Blocks& blocks) : narrow_(blocks), wide_(blocks) {}

  // Rows come in ascending order, each at most once.
  void set(uint32_t row, int64_t value);

  bool has(uint64_t row) const { return row / 64 < present_.size() && (present_[row / 64] >> row % 64 & 1) != 0; }
  bool empty() const { return present_.empty(); }

  // Writes the numbers of `rows` to `out`, and `missing` for rows without a number.
  void gather(const int64_t* rows, size_t count, int64_t missing, int64_t* out) const;

 private:
  void widen();
  int64_t at(size_t place) const { return is_wide_ ? wide_[place] : int64_t{narrow_[place]}; }

  std::vector<uint64_t> present_;
  store::Chunks<uint32_t> narrow_;
  store::Chunks<int64_t> wide_;
  bool is_wide_ = false;
};

}  // namespace collector::read
