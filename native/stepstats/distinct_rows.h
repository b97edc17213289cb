// Which rows of some columns are alike, so that what follows from their values is made once for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepstats/recorded_table.h"

namespace collector::convert {

struct DistinctRows {
  std::vector<uint32_t> firsts;  // the first row of each that is different
  std::vector<uint32_t> places;  // of every row: the place of the one that it is alike among `firsts`
};

DistinctRows find_distinct_rows(const std::vector<ColumnView>& columns, size_t num_rows);

}  // namespace collector::convert
