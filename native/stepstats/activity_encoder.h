// Encodes the activity messages of a table: every column that the nodes themselves do not contain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepstats/recorded_table.h"

namespace collector::stepstats {

class ActivityEncoder {
 public:
  // The table's columns must outlive the encoder.
  explicit ActivityEncoder(const RecordedTable& table);

  // The size of the content of a row's message in bytes.
  uint32_t num_bytes(size_t row) const { return num_bytes_[row]; }
  char* write(size_t row, char* to) const;

 private:
  // A column with varying values, preceded by the encoded columns whose value is the same in all rows.
  struct Part {
    std::string before;
    std::string tag;
    ColumnView column;
  };

  std::vector<Part> parts_;
  std::string behind_;
  std::vector<uint32_t> num_bytes_;  // by row
};

}  // namespace collector::stepstats
