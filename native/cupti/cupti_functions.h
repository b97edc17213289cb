// The functions of libcupti that are called, with their signatures.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti/abi.h"

namespace collector::cupti {

using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
// With the last argument of V2, a description that is not needed here.
using BufferRequestedV2 = void (*)(uint8_t** buffer, size_t* size, size_t* max_records, const void* info);
using BufferCompletedV2 = void (*)(uint8_t* buffer, size_t size, size_t valid, const void* info);
using SubscriberCallback = void (*)(void* user, uint32_t domain, uint32_t callback_id, const void* data);

// The argument of cuptiSubscribe_v2: 32 bytes in 13.0 and 13.1, which refuse any other size, and 40 bytes from 13.2.
struct SubscriberParams {
  size_t struct_size;
  const char* subscriber_name;
  char* holder_name;
  size_t holder_name_bytes;
  uint8_t allow_multiple;
  uint8_t reserved[7];
};

// NOLINTBEGIN(readability-identifier-naming): the members bear NVIDIA's own names.

// Functions of libcupti; null if the library lacks the function. The signatures are those of the function's first
// version; they never changed.
struct CuptiFunctions {
  Result (*GetVersion)(uint32_t*) = nullptr;
  Result (*GetResultString)(Result, const char**) = nullptr;
  Result (*GetTimestamp)(uint64_t*) = nullptr;
  Result (*GetCallbackName)(CallbackDomain, uint32_t, const char**) = nullptr;
  Result (*Subscribe)(void**, SubscriberCallback, void*) = nullptr;
  Result (*Subscribe_v2)(void**, SubscriberCallback, void*, SubscriberParams*) = nullptr;
  Result (*Unsubscribe)(void*) = nullptr;
  Result (*EnableCallback)(uint32_t, void*, uint32_t, uint32_t) = nullptr;
  Result (*GetContextId)(void*, uint32_t*) = nullptr;
  Result (*GetStreamIdEx)(void*, void*, uint8_t, uint32_t*) = nullptr;
  Result (*GetGraphId)(void*, uint32_t*) = nullptr;
  Result (*GetGraphExecId)(void*, uint32_t*) = nullptr;
  Result (*GetGraphNodeId)(void*, uint64_t*) = nullptr;
  Result (*SetThreadIdType)(uint32_t) = nullptr;
  Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted) = nullptr;
  Result (*ActivityEnable)(ActivityKind) = nullptr;
  Result (*ActivityEnableAndDump)(ActivityKind) = nullptr;
  Result (*ActivityDisable)(ActivityKind) = nullptr;
  Result (*ActivityFlushAll)(uint32_t) = nullptr;
  Result (*ActivityGetNextRecord)(uint8_t*, size_t, uint8_t**) = nullptr;
  Result (*ActivityGetNumDroppedRecords)(void*, uint32_t, size_t*) = nullptr;
  Result (*ActivitySetAttribute)(Attribute, size_t*, void*) = nullptr;
  Result (*ActivityPushExternalCorrelationId)(ExternalCorrelationKind, uint64_t) = nullptr;
  Result (*ActivityPopExternalCorrelationId)(ExternalCorrelationKind, uint64_t*) = nullptr;
  Result (*ActivityEnableRuntimeApi)(uint32_t, uint8_t) = nullptr;
  Result (*ActivityEnableDriverApi)(uint32_t, uint8_t) = nullptr;
  Result (*ActivityEnableAllSyncRecords)(uint8_t) = nullptr;
  // V2: for one of several subscribers, the first argument. The pointer that Enable and Disable end with is a choice of
  // fields; null is all.
  Result (*GetTimestamp_v2)(void*, uint64_t*) = nullptr;
  Result (*ActivityRegisterCallbacks_v2)(void*, BufferRequestedV2, BufferCompletedV2) = nullptr;
  Result (*ActivityEnable_v2)(void*, ActivityKind, void*) = nullptr;
  Result (*ActivityEnableAndDump_v2)(void*, ActivityKind, void*) = nullptr;
  Result (*ActivityDisable_v2)(void*, ActivityKind, void*) = nullptr;
  Result (*ActivityGetNextRecord_v2)(void*, uint8_t*, size_t, uint8_t**) = nullptr;
  Result (*ActivityGetNumDroppedRecords_v2)(void*, void*, uint32_t, size_t*) = nullptr;
  Result (*ActivityGetAttribute_v2)(void*, Attribute, size_t*, void*) = nullptr;
  Result (*ActivitySetAttribute_v2)(void*, Attribute, size_t*, void*) = nullptr;
  Result (*ActivityPushExternalCorrelationId_v2)(void*, ExternalCorrelationKind, uint64_t) = nullptr;
  Result (*ActivityPopExternalCorrelationId_v2)(void*, ExternalCorrelationKind, uint64_t*) = nullptr;
  Result (*ActivityEnableRuntimeApi_v2)(void*, uint32_t, uint8_t) = nullptr;
  Result (*ActivityEnableDriverApi_v2)(void*, uint32_t, uint8_t) = nullptr;
};

// NOLINTEND(readability-identifier-naming)

}  // namespace collector::cupti
