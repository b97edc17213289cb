// Packs rows into few bytes, column by column; journal_format.h explains the encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/tables.h"

namespace collector::capture {

// Rows of one table in one contiguous piece.
struct RowRun {
  const char* rows;
  size_t count;
  size_t row_bytes;
  const store::Column* columns;
  size_t num_columns;
};

// Keeps the memory that it works in for the next rows. Not thread-safe.
class RowPacker {
 public:
  // The bytes of the columns' heads in packed rows: fewer rows than this many bytes of rows are not worth packing.
  static size_t head_bytes(size_t num_columns) { return num_columns * 10; }

  // Appends the packed columns to `out` and returns true; or appends nothing and returns false if they would not be
  // smaller than the rows. Throws std::bad_alloc.
  bool pack(const RowRun& run, std::vector<char>& out);

 private:
  std::vector<uint64_t> values_;
  std::vector<uint64_t> before_;  // of the column before
};

}  // namespace collector::capture
