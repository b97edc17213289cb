// The Activity API's binary interface, CUDA 12.0 to 13.5, as this project needs it.
//
// kinds/generated/kinds.h holds each record as the newest CUPTI lays it out. Every older layout is a prefix of it:
// newer versions only append fields, or give meaning to former padding. So one struct reads all versions, provided that
//  * records are stepped by the loaded library's stride (Library::stride), never by sizeof;
//  * a field marked "since" is read only where the loaded library is at least that new: in an older one its
//    bytes belong to the next record.
// Field names are CUPTI's own, so that a test can hold each offset against NVIDIA's headers.
#pragma once

#include <cstdint>

#include "kinds/generated/kinds.h"

namespace collector::cupti {

// What a CUPTI call returns; the numbers never changed, new ones were appended.
enum class Result : uint32_t {
  kSuccess = 0,
  kInvalidParameter = 1,
  kInvalidDevice = 2,
  kOutOfMemory = 8,
  kMaxLimitReached = 12,
  kNotReady = 13,
  kNotCompatible = 14,
  kNotInitialized = 15,
  kQueueEmpty = 18,
  kInvalidKind = 21,
  kDisabled = 23,
  kNotSupported = 27,
  kVirtualizedDeviceNotSupported = 33,
  kInsufficientPrivileges = 35,
  kMultipleSubscribersNotSupported = 39,
  kVirtualizedDeviceInsufficientPrivileges = 40,
  kConfidentialComputingNotSupported = 41,
  kCmpDeviceNotSupported = 42,
  kUnknown = 999,
  kMigDeviceNotSupported = 43,
  kSliDeviceNotSupported = 44,
  kWslDeviceNotSupported = 45,
};

enum class Attribute : uint32_t {
  kDeviceBufferPoolLimit = 2,
  kZeroedOutActivityBuffer = 5,
  kDeviceBufferPreAllocateValue = 6,
  kMemAllocationTypeHostPinned = 8,
  kPerThreadActivityBuffer = 9,
};

}  // namespace collector::cupti
