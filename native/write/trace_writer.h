// A TraceVisitor that writes a file. Each drawn format is one subclass and a line in trace_writers.cpp.
#pragma once

#include <string_view>

#include "draw/events.h"

namespace collector::write {

class TraceWriter : public draw::TraceVisitor {
 public:
  // Writes the file's description of itself, a JSON object, and ends the file. Must be called once, after the last
  // on_end.
  virtual void finish(std::string_view about) = 0;
};

}  // namespace collector::write
