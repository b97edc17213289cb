// A TraceVisitor that writes a file. A format that is drawn is one of these and a line in trace_writers.cpp.
#pragma once

#include <string_view>

#include "draw/events.h"

namespace collector::convert {

class TraceWriter : public TraceVisitor {
 public:
  // Writes what the file says of itself, a JSON object, and ends the file. Once, after the last on_end.
  virtual void finish(std::string_view about) = 0;
};

}  // namespace collector::convert
