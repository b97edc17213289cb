#include "bindings/typed_tables.h"

#include "bindings/moved_array.h"

namespace py = pybind11;

namespace collector::bindings {

using stepstats::TypedRows;
using stepstats::TypedTable;

TypedRows wanted_rows(const std::vector<WantedTable>& wanted) {
  TypedRows rows;
  for (const auto& [kind, columns] : wanted) {
    TypedTable& table = rows.tables.emplace_back();
    table.kind = kind;
    for (const auto& [field, width] : columns) {
      if (width > sizeof(int64_t)) throw py::value_error("a column of values of more than 64 bits");
      table.columns.push_back({field, width, {}});
    }
  }
  return rows;
}

py::list column_values(TypedRows& rows) {
  const py::object zeros = py::module_::import("numpy").attr("zeros");  // pages of zeros take no memory until written
  py::list tables;
  for (TypedTable& table : rows.tables) {
    py::list columns;
    for (TypedTable::Column& column : table.columns) {
      columns.append(column.values.empty() ? zeros(table.num_rows * column.width, "uint8")
                                           : py::object(moved_array<uint8_t>(std::move(column.values))));
    }
    tables.append(std::move(columns));
  }
  return tables;
}

}  // namespace collector::bindings
