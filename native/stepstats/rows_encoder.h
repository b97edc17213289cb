// Rows that have no node, in the wire format of Capture.rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepstats/recorded_table.h"
#include "stepstats/run_metadata.h"
#include "stepstats/wire.h"
#include "stepstats/wire_sink.h"

namespace collector::stepstats {

// Encodes the rows of a table, column by column.
class RowsEncoder {
 public:
  explicit RowsEncoder(const RecordedTable& table) : table_(table) {
    put_number(content_, kRowsKind, table.kind);
    for (const RecordedTable::Field& field : table.fields) {
      const bool is_first = &field == &table.fields.front();  // its size gives the number of rows
      const bool has_values =
          table.num_rows != 0 && (!field.column.is_constant(table.num_rows) || field.column[0] != 0);
      if (!is_first && !has_values) continue;
      Measure values;
      put_values(values, field);
      Measure column;
      put_number(column, kColumnField, field.number);
      put_head(column, kColumnValues, values.num_bytes());
      columns_.push_back({&field, values.num_bytes(), column.num_bytes() + values.num_bytes()});
      put_head(content_, kRowsColumns, columns_.back().num_bytes);
      content_bytes_ += columns_.back().num_bytes;
    }
    content_bytes_ += content_.num_bytes();
  }

  size_t num_bytes() const {
    Measure head;
    put_head(head, kCaptureRows, content_bytes_);
    return head.num_bytes() + content_bytes_;
  }

  char* write(char* to) const {
    WireWriter writer(to);
    put_head(writer, kCaptureRows, content_bytes_);
    put_number(writer, kRowsKind, table_.kind);
    for (const Column& column : columns_) {
      put_head(writer, kRowsColumns, column.num_bytes);
      put_number(writer, kColumnField, column.field->number);
      put_head(writer, kColumnValues, column.value_bytes);
      put_values(writer, *column.field);
    }
    return writer.to();
  }

 private:
  // Fields of Rows and of Column.
  static constexpr uint32_t kRowsKind = 1;
  static constexpr uint32_t kRowsColumns = 2;
  static constexpr uint32_t kColumnField = 1;
  static constexpr uint32_t kColumnValues = 2;

  struct Column {
    const RecordedTable::Field* field;
    size_t value_bytes;
    size_t num_bytes;
  };

  template <typename Sink>
  static void put_head(Sink& sink, uint32_t field, size_t num_bytes) {
    sink.put_varint(make_tag(field, kBytes));
    sink.put_varint(num_bytes);
  }

  template <typename Sink>
  void put_values(Sink& sink, const RecordedTable::Field& field) const {
    Sink own = sink;  // a local copy, which the compiler keeps in registers
    field.column.for_each(0, table_.num_rows, [&own](int64_t value) { own.put_varint(static_cast<uint64_t>(value)); });
    sink = own;
  }

  const RecordedTable& table_;
  Measure content_;
  std::vector<Column> columns_;
  size_t content_bytes_ = 0;
};

}  // namespace collector::stepstats
