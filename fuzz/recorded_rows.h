// The activities of a message as the tables of a recording, and their conversion back to a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepstats/typed_rows.h"

namespace collector::fuzz {

class RecordedRows {
 public:
  // Reads all columns of all tables with activities. Throws WireError.
  RecordedRows(std::string_view message, bool is_run_metadata, int64_t offset_ns, uint32_t choice);

  // A RunMetadata with these rows.
  std::string to_message() const;

  // Whether both have the same rows, in any order.
  bool operator==(const RecordedRows& other) const;

 private:
  int64_t offset_ns_;
  uint32_t choice_;  // of the data that a step has besides its rows
  stepstats::TypedRows rows_;
};

}  // namespace collector::fuzz
