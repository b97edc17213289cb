// The messages of a table's activities: every column that their nodes do not have themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepstats/recorded_table.h"

namespace collector::convert {

class ActivityEncoder {
 public:
  // The table's columns outlive the encoder.
  explicit ActivityEncoder(const RecordedTable& table);

  // Bytes of the content of a row's message.
  uint32_t num_bytes(size_t row) const { return num_bytes_[row]; }
  char* write(size_t row, char* to) const;

 private:
  // A column that has several values, and what stands before it: columns with the same value in all rows.
  struct Part {
    std::string before;
    std::string tag;
    ColumnView column;
  };

  std::vector<Part> parts_;
  std::string behind_;
  std::vector<uint32_t> num_bytes_;  // by row
};

}  // namespace collector::convert
