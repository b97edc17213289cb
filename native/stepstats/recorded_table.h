// A table of a recording, as columns of integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collector::stepstats {

// One column of a table, of integers of any width.
struct ColumnView {
  const char* data = nullptr;
  uint8_t num_bytes = 0;  // per value
  bool is_signed = false;

  // Always inline: at each use the type is nearly always the same, which the processor's branch prediction learns.
  [[gnu::always_inline]] int64_t operator[](size_t row) const {
    switch (num_bytes) {
      case 1:
        return is_signed ? read<int8_t>(row) : read<uint8_t>(row);
      case 2:
        return is_signed ? read<int16_t>(row) : read<uint16_t>(row);
      case 4:
        return is_signed ? read<int32_t>(row) : read<uint32_t>(row);
      default:
        return read<int64_t>(row);
    }
  }

  // Calls visit(value) for the rows from `first` up to `last`, in order, and checks the type only once.
  template <typename Visit>
  void for_each(size_t first, size_t last, const Visit& visit) const {
    switch (num_bytes) {
      case 1:
        return is_signed ? for_each_of<int8_t>(first, last, visit) : for_each_of<uint8_t>(first, last, visit);
      case 2:
        return is_signed ? for_each_of<int16_t>(first, last, visit) : for_each_of<uint16_t>(first, last, visit);
      case 4:
        return is_signed ? for_each_of<int32_t>(first, last, visit) : for_each_of<uint32_t>(first, last, visit);
      default:
        return for_each_of<int64_t>(first, last, visit);
    }
  }

  // Whether the first `num_rows` values are all equal.
  bool is_constant(size_t num_rows) const {
    return num_rows < 2 || std::memcmp(data, data + num_bytes, (num_rows - 1) * num_bytes) == 0;
  }

 private:
  template <typename Value>
  int64_t read(size_t row) const {
    Value value;
    std::memcpy(&value, data + row * sizeof(Value), sizeof value);
    return static_cast<int64_t>(value);
  }

  template <typename Value, typename Visit>
  void for_each_of(size_t first, size_t last, const Visit& visit) const {
    for (size_t row = first; row < last; ++row) visit(read<Value>(row));
  }
};

// One table of a recording.
struct RecordedTable {
  struct Field {
    uint32_t number;  // field number in Activity
    ColumnView column;
  };

  uint32_t kind = 0;  // Activity.Kind
  size_t num_rows = 0;
  std::vector<std::pair<std::string, ColumnView>> columns;
  std::vector<Field> fields;  // the columns that the node itself does not contain, by field number

  // Throws std::invalid_argument if the table has no such column.
  ColumnView operator[](std::string_view name) const;
};

}  // namespace collector::stepstats
