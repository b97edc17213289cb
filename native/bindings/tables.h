// A finished capture as the tables that Python defines (collector.recording.SCHEMA).
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "capture/own_calls.h"
#include "cupti/library.h"
#include "store/store.h"

namespace collector::bindings {

// {"tables": {table: {column: array}}, "strings": [text]}. Moves the rows out of the store, which is empty afterwards:
// the memory of the rows is released while that of the columns is filled.
pybind11::dict tables_of(const cupti::Library& library, store::Store& store,
                         std::vector<store::AnnotationRow> annotations,
                         const std::vector<std::string>& annotation_paths, capture::OwnCalls own_calls);

}  // namespace collector::bindings
