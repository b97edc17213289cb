// The part of the Activity API's binary interface, CUDA 12.0 to 13.5, that this project needs.
//
// kinds/generated/kinds.h holds each record in the layout of the newest CUPTI. Every older layout is a prefix of it:
// newer versions only append fields or give a meaning to former padding. One struct therefore reads all versions, under
// two conditions:
// * records are stepped by the loaded library's stride (Library::stride), never by sizeof;
// * a field marked "since" is read only if the loaded library is at least that new: in an older library its
//   bytes belong to the next record.
// Field names are CUPTI's own, so that a test can compare each offset with NVIDIA's headers.
#pragma once

#include <cstdint>

#include "kinds/generated/kinds.h"

namespace collector::cupti {

// The results of CUPTI calls. The numbers never changed; newer versions only appended results.
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
