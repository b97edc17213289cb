// Reads the activities of a step back into the recorded rows: wire bytes to columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/generated/activities.h"
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

// Appends activities one at a time to the tables of their kinds.
class TypedRowsReader {
 public:
  // `whole` is the file's bytes, which limit the memory that rows may take. Both must outlive the reader.
  TypedRowsReader(TypedRows& rows, std::string_view whole);

  // Appends the activity of a node; returns its row, or kNoRow if no table has its kind. Throws WireError.
  static constexpr int64_t kNoRow = -1;
  int64_t read(std::string_view activity, const Node& node, int64_t offset_ns);

  // Appends rows without nodes: columns of one length, which is their number. Throws WireError.
  void read_rows(std::string_view message);

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Target {
    TypedTable* table;
    std::vector<uint32_t> place_of_field;
    std::vector<int64_t> row;

    void set(uint32_t field, int64_t value) {
      if (field < place_of_field.size() && place_of_field[field] != kNowhere) row[place_of_field[field]] = value;
    }
    void set(ActivityField field, int64_t value) { set(static_cast<uint32_t>(field), value); }
    size_t row_bytes = 0;  // in the columns with values
  };

  // A column takes memory for all rows once one of them has a value, so that a few bytes of a file could become many.
  static constexpr size_t kMostBytes = size_t{16} << 20;
  static constexpr size_t kMostBytesPerByte = 64;

  void append(Target& target);
  void take(size_t num_bytes);
  [[noreturn]] void refuse(const char* what) const;
  // The number of a column's field, and its packed values.
  std::pair<uint32_t, std::string_view> read_column(std::string_view message) const;
  Target* target_of(uint32_t kind);

  std::string_view whole_;
  std::vector<Target> targets_;
  std::string_view read_;  // the message that is being read
  size_t bytes_left_;
};

// Appends all activities to the tables of their kinds. `offset_ns` is wall time minus the tables' time. Throws
// WireError.
void read_typed_rows(std::string_view bytes, bool is_run_metadata, int64_t offset_ns, TypedRows& rows);

}  // namespace collector::stepstats
