#include "read/sparse_column.h"

namespace collector::read {

void SparseColumn::set(uint32_t row, int64_t value) {
  if (row / 64 >= present_.size()) present_.resize(row / 64 + 1);
  present_[row / 64] |= uint64_t{1} << row % 64;
  if (!is_wide_ && (value < 0 || value > int64_t{UINT32_MAX})) widen();
  if (is_wide_) {
    wide_.append() = value;
  } else {
    narrow_.append() = static_cast<uint32_t>(value);
  }
}

void SparseColumn::widen() {
  narrow_.take_all([this](const uint32_t* run, size_t count) {
    for (size_t i = 0; i < count; ++i) wide_.append() = run[i];
  });
  is_wide_ = true;
}

void SparseColumn::gather(const int64_t* rows, size_t count, int64_t missing, int64_t* out) const {
  std::vector<uint32_t> before(present_.size());  // the numbers of rows before each word
  uint32_t sum = 0;
  for (size_t word = 0; word < present_.size(); ++word) {
    before[word] = sum;
    sum += static_cast<uint32_t>(__builtin_popcountll(present_[word]));
  }
  for (size_t i = 0; i < count; ++i) {
    const auto row = static_cast<uint64_t>(rows[i]);
    if (!has(row)) {
      out[i] = missing;
      continue;
    }
    const uint64_t lower = present_[row / 64] & ((uint64_t{1} << row % 64) - 1);
    out[i] = at(before[row / 64] + static_cast<size_t>(__builtin_popcountll(lower)));
  }
}

}  // namespace collector::read
