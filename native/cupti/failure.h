// Why something could not be done, as a value: nothing in native/ lets an exception cross a C boundary.
#pragma once

#include <cstdint>
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
};

struct Failure {
  FailureKind kind;
  std::string cause;   // one sentence without a full stop
  std::string remedy;  // one sentence, or empty
};

// The names that Python sees: "driver-not-found", "cupti-not-found", ...
const char* name_of(FailureKind kind);

// What a failed call means to a user. `text` is CUPTI's own name of the result, where the library gave one.
Failure describe(const char* call, Result result, const std::string& text);

}  // namespace collector::cupti
