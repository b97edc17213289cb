// The cause of a failed operation, as a value: native/ lets no exception cross a C boundary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cupti/abi.h"

namespace collector::cupti {

enum class FailureKind : uint8_t {
  kDriverNotFound,
  kCuptiNotFound,
  kCuptiUnusable,
  kPermissionDenied,
  kSubscriberConflict,
  kCuptiCall,
  kAlreadyActive,
  kNotListening,
};

struct OpenedDriver {
  std::string path;
  int version;  // 12040 means 12.4
};

struct Failure {
  FailureKind kind;
  std::string cause;                                  // one sentence without a full stop
  std::string remedy;                                 // one sentence, or empty
  std::optional<OpenedDriver> driver = std::nullopt;  // where something else failed after it was opened
};

// The names of the kinds in Python: "driver-not-found", "cupti-not-found", ...
const char* name_of(FailureKind kind);

// The failure that a call's result means to a user. `text` is CUPTI's own name of the result, if the library gave one.
Failure describe(const char* call, Result result, const std::string& text);

}  // namespace collector::cupti
