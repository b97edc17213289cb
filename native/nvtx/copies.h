// The copies of NVTX in the libraries of this process, and whether they call our handler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collector::nvtx {

enum class CopyState : uint8_t {
  kFresh,    // no call was made yet
  kHandled,  // calls our handler
  kMissed,   // its first call was made before the handler was armed: its ranges are never seen
  kUnknown,  // it does not call our handler, and its symbols do not tell more, or its file was replaced
};

struct Copy {
  std::string library;
  CopyState state;
};

const char* name_of(CopyState state);

// Whether the environment names our library as the tool that copies look for, at their first call.
bool is_armed();

// Whether an environment variable names the file of this library.
bool is_named_by(const char* variable);

// Searches all libraries; a library is read only once in the life of the process. Thread-safe.
std::vector<Copy> copies();

}  // namespace collector::nvtx
