// Reads the activities of a step back into the recorded rows: wire bytes to columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepstats/step_stats.h"

namespace collector::stepstats {

// One table to read, and its rows.
struct TypedTable {
  struct Column {
    uint32_t field;            // field number in Activity
    uint8_t width;             // of one value in bytes
    std::vector<char> values;  // empty as long as all of them are 0: many columns of real steps are
  };
  uint32_t kind;  // Activity.Kind
  std::vector<Column> columns;
  size_t num_rows = 0;
};

struct TypedRows {
  std::vector<TypedTable> tables;
  std::string capture;           // RunMetadata.capture without its activities
  uint64_t without_columns = 0;  // nodes that neither have an activity nor repeat a node that has one
};

// Appends all activities to the tables of their kinds. `offset_ns` is wall time minus the tables' time. Throws
// WireError.
void read_typed_rows(std::string_view bytes, bool is_run_metadata, int64_t offset_ns, TypedRows& rows);

}  // namespace collector::stepstats
