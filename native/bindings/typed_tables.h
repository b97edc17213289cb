// Tables of typed rows between Python and the readers of activities.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "stepstats/typed_rows.h"

namespace collector::bindings {

// (Activity.Kind, [(field of Activity, bytes of a value)])
using WantedTable = std::tuple<uint32_t, std::vector<std::pair<uint32_t, uint8_t>>>;

// Empty rows of the wanted tables. Throws ValueError for values of more than 64 bits.
stepstats::TypedRows wanted_rows(const std::vector<WantedTable>& wanted);

// The values of each column of each table as bytes; the columns are moved.
pybind11::list column_values(stepstats::TypedRows& rows);

}  // namespace collector::bindings
