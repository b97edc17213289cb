// A finished capture as the tables that Python knows (collector.recording.SCHEMA).
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cupti/library.h"
#include "store/store.h"

namespace collector {

// API calls of this thread that start at or after this time are left out: they are the collector's own.
struct OwnCalls {
  uint32_t thread_id;
  int64_t from_ns;
};

// {"tables": {table: {column: array}}, "strings": [text]}. Takes the rows out of the store, which is empty afterwards:
// the memory of one is given back as that of the other is filled.
pybind11::dict tables_of(const cupti::Library& library, store::Store& store,
                         std::vector<store::AnnotationRow> annotations,
                         const std::vector<std::string>& annotation_paths, OwnCalls own_calls);

}  // namespace collector
