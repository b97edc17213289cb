// Names of objects in records that another part of the library knows, for example names that a program gave by NVTX.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace collector::capture {

struct Names {
  // By their keys: "thread.ID", "nvtx.device.ORDINAL", "nvtx.context.ID", "nvtx.stream.CONTEXT.ID".
  std::map<std::string, std::string> texts;
  // Counters.
  std::map<std::string, int64_t> numbers;
};

// Journals state them as facts. Both functions may be called from any thread.
struct StatedNames {
  // Changes with the names; 0: there are none.
  uint64_t (*version)() = nullptr;
  Names (*names)() = nullptr;
};

}  // namespace collector::capture
