// Groups rows that are equal in some columns, so that values derived from these columns are computed once per group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepstats/recorded_table.h"

namespace collector::stepstats {

struct DistinctRows {
  std::vector<uint32_t> firsts;  // the first row of each group
  std::vector<uint32_t> places;  // for every row, the place of its group in `firsts`
};

DistinctRows find_distinct_rows(const std::vector<ColumnView>& columns, size_t num_rows);

}  // namespace collector::stepstats
