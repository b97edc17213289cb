#include "stepstats/recorded_table.h"

#include <stdexcept>

namespace collector::stepstats {

ColumnView RecordedTable::operator[](std::string_view name) const {
  for (const auto& [own, column] : columns) {
    if (own == name) return column;
  }
  throw std::invalid_argument("a table has no column " + std::string(name));
}

}  // namespace collector::stepstats
