// A finished capture as the tables that Python knows (collector.recording.SCHEMA).
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "capture/own_calls.h"
#include "cupti/library.h"
#include "store/store.h"

namespace collector {

// {"tables": {table: {column: array}}, "strings": [text]}. Takes the rows out of the store, which is empty afterwards:
// the memory of one is given back as that of the other is filled.
pybind11::dict tables_of(const cupti::Library& library, store::Store& store,
                         std::vector<store::AnnotationRow> annotations,
                         const std::vector<std::string>& annotation_paths, capture::OwnCalls own_calls);

}  // namespace collector
