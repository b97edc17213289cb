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

// {"tables": {table: {column: array}}, "strings": [text]}. Interns API names and annotation paths in the store's
// string table.
pybind11::dict tables_of(const cupti::Library& library, store::Store& store,
                         const std::vector<store::AnnotationRow>& annotations,
                         const std::vector<std::string>& annotation_paths, OwnCalls own_calls);

}  // namespace collector
