// The writers of drawn files by name.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "write/output.h"
#include "write/trace_writer.h"

namespace collector::write {

std::vector<std::string_view> trace_writer_names();

// Null if there is no writer of that name. The output must outlive the writer.
std::unique_ptr<TraceWriter> make_trace_writer(std::string_view name, Output& output);

}  // namespace collector::write
