#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cupti/activity_api.h"

using collector::cupti::ActivityApi;
using collector::cupti::ActivityKind;
using collector::cupti::Attribute;
using collector::cupti::BufferCompleted;
using collector::cupti::BufferCompletedV2;
using collector::cupti::BufferRequested;
using collector::cupti::BufferRequestedV2;
using collector::cupti::CallbackDomain;
using collector::cupti::CuptiFunctions;
using collector::cupti::ExternalCorrelationKind;
using collector::cupti::Result;
using collector::cupti::SubscriberCallback;
using collector::cupti::SubscriberParams;

namespace {

std::vector<std::string> called;
int subscription = 0;
bool is_refused = false;

Result note(const char* name, const void* subscriber = nullptr) {
  called.emplace_back(name);
  if (subscriber != nullptr) CHECK(subscriber == &subscription);
  return Result::kSuccess;
}

Result subscribe(void** handle, SubscriberCallback, void*, SubscriberParams* params) {
  called.emplace_back("Subscribe_v2");
  CHECK(params->struct_size == (params->allow_multiple == 1 ? 40 : 32));
  std::string("XLA").copy(params->holder_name, params->holder_name_bytes);
  if (is_refused) return Result::kMultipleSubscribersNotSupported;
  *handle = &subscription;
  return Result::kSuccess;
}

// A library in which every function notes its name.
CuptiFunctions noting() {
  CuptiFunctions f;
  f.Subscribe_v2 = subscribe;
  f.GetTimestamp = [](uint64_t*) { return note("GetTimestamp"); };
  f.GetTimestamp_v2 = [](void* of, uint64_t*) { return note("GetTimestamp_v2", of); };
  f.ActivityRegisterCallbacks = [](BufferRequested, BufferCompleted) { return note("RegisterCallbacks"); };
  f.ActivityRegisterCallbacks_v2 = [](void* of, BufferRequestedV2, BufferCompletedV2) {
    return note("RegisterCallbacks_v2", of);
  };
  f.ActivityEnable = [](ActivityKind) { return note("Enable"); };
  f.ActivityEnable_v2 = [](void* of, ActivityKind, void*) { return note("Enable_v2", of); };
  f.ActivityEnableAndDump = [](ActivityKind) { return note("EnableAndDump"); };
  f.ActivityEnableAndDump_v2 = [](void* of, ActivityKind, void*) { return note("EnableAndDump_v2", of); };
  f.ActivityDisable = [](ActivityKind) { return note("Disable"); };
  f.ActivityDisable_v2 = [](void* of, ActivityKind, void*) { return note("Disable_v2", of); };
  f.ActivityGetNextRecord = [](uint8_t*, size_t, uint8_t**) { return note("GetNextRecord"); };
  f.ActivityGetNextRecord_v2 = [](void* of, uint8_t*, size_t, uint8_t**) { return note("GetNextRecord_v2", of); };
  f.ActivityGetNumDroppedRecords = [](void*, uint32_t, size_t* dropped) {
    *dropped = 1;
    return note("GetNumDroppedRecords");
  };
  f.ActivityGetNumDroppedRecords_v2 = [](void* of, void*, uint32_t, size_t* dropped) {
    *dropped = 2;
    return note("GetNumDroppedRecords_v2", of);
  };
  f.ActivityGetAttribute_v2 = [](void* of, Attribute attribute, size_t*, void* value) {
    CHECK(attribute == Attribute::kEnableMultiSubscriberGraphTrace);
    *static_cast<uint8_t*>(value) = 1;
    return note("GetAttribute_v2", of);
  };
  f.ActivitySetAttribute = [](Attribute, size_t*, void*) { return note("SetAttribute"); };
  f.ActivitySetAttribute_v2 = [](void* of, Attribute attribute, size_t* bytes, void* value) {
    CHECK(*bytes == (attribute == Attribute::kThreadIdType ? 4 : 1));
    CHECK(*static_cast<uint8_t*>(value) == (attribute == Attribute::kEnableAllSyncRecords ? 0 : 1));
    return note("SetAttribute_v2", of);
  };
  f.SetThreadIdType = [](uint32_t) { return note("SetThreadIdType"); };
  f.ActivityPushExternalCorrelationId = [](ExternalCorrelationKind, uint64_t) { return note("Push"); };
  f.ActivityPushExternalCorrelationId_v2 = [](void* of, ExternalCorrelationKind, uint64_t) {
    return note("Push_v2", of);
  };
  f.ActivityPopExternalCorrelationId = [](ExternalCorrelationKind, uint64_t*) { return note("Pop"); };
  f.ActivityPopExternalCorrelationId_v2 = [](void* of, ExternalCorrelationKind, uint64_t*) {
    return note("Pop_v2", of);
  };
  f.ActivityEnableRuntimeApi = [](uint32_t, uint8_t) { return note("EnableRuntimeApi"); };
  f.ActivityEnableRuntimeApi_v2 = [](void* of, uint32_t, uint8_t) { return note("EnableRuntimeApi_v2", of); };
  f.ActivityEnableDriverApi = [](uint32_t, uint8_t) { return note("EnableDriverApi"); };
  f.ActivityEnableDriverApi_v2 = [](void* of, uint32_t, uint8_t) { return note("EnableDriverApi_v2", of); };
  f.ActivityEnableAllSyncRecords = [](uint8_t) { return note("EnableAllSyncRecords"); };
  return f;
}

void call_each(const ActivityApi& api) {
  uint64_t number = 0;
  uint8_t* record = nullptr;
  api.timestamp(&number);
  api.register_callbacks({});
  api.enable(ActivityKind::kConcurrentKernel);
  api.enable_and_dump(ActivityKind::kDevice);
  api.disable(ActivityKind::kDevice);
  api.next_record(nullptr, 0, &record);
  api.set_attribute(Attribute::kZeroedOutActivityBuffer, 1);
  api.use_system_thread_ids();
  api.push_external_id(1);
  api.pop_external_id(&number);
  api.leave_out_call(CallbackDomain::kRuntimeApi, 1);
  api.leave_out_call(CallbackDomain::kDriverApi, 1);
  api.leave_out_unfinished_waits();
}

const std::vector<std::string> kOfProcess = {
    "GetTimestamp",        "RegisterCallbacks", "Enable", "EnableAndDump", "Disable",          "GetNextRecord",
    "SetAttribute",        "SetThreadIdType",   "Push",   "Pop",           "EnableRuntimeApi", "EnableDriverApi",
    "EnableAllSyncRecords"};

const std::vector<std::string> kOfSubscriber = {
    "GetTimestamp_v2",     "RegisterCallbacks_v2", "Enable_v2",       "EnableAndDump_v2", "Disable_v2",
    "GetNextRecord_v2",    "SetAttribute_v2",      "SetAttribute_v2", "Push_v2",          "Pop_v2",
    "EnableRuntimeApi_v2", "EnableDriverApi_v2",   "SetAttribute_v2"};

}  // namespace

TEST_CASE("only functions of the process are called before a subscription among several, and only its own after it") {
  const CuptiFunctions functions = noting();
  ActivityApi api(functions);
  CHECK(api.has_v2());
  called.clear();
  call_each(api);
  CHECK(called == kOfProcess);
  CHECK(api.take_num_dropped() == 1);
  CHECK_FALSE(api.records_whole_graphs());
  CHECK(api.first_subscriber().empty());

  is_refused = false;
  std::string holder;
  REQUIRE(api.join(nullptr, holder) == Result::kSuccess);
  CHECK(holder == "XLA");
  CHECK(api.first_subscriber() == "XLA");
  CHECK(api.subscriber() == &subscription);
  called.clear();
  call_each(api);
  CHECK(called == kOfSubscriber);
  CHECK(api.take_num_dropped() == 2);
  CHECK(api.records_whole_graphs());
}

TEST_CASE("a refused subscription changes nothing and names the holder") {
  const CuptiFunctions functions = noting();
  ActivityApi api(functions);
  is_refused = true;
  std::string holder;
  CHECK(api.join(nullptr, holder) == Result::kMultipleSubscribersNotSupported);
  CHECK(holder == "XLA");
  CHECK(api.holder(nullptr, 13010) == "XLA");
  CHECK(api.subscriber() == nullptr);
  called.clear();
  call_each(api);
  CHECK(called == kOfProcess);
}

TEST_CASE("a library without some functions is used without them") {
  CuptiFunctions functions;
  functions.ActivityRegisterCallbacks = [](BufferRequested, BufferCompleted) { return Result::kSuccess; };
  functions.ActivityEnable = [](ActivityKind) { return Result::kSuccess; };
  functions.ActivityDisable = [](ActivityKind) { return Result::kSuccess; };
  const ActivityApi api(functions);
  CHECK_FALSE(api.has_v2());
  CHECK_FALSE(api.has_external_correlation());
  CHECK(api.enable_and_dump(ActivityKind::kDevice) == Result::kSuccess);
  CHECK(api.take_num_dropped() == 0);
  CHECK(api.push_external_id(1) == Result::kNotSupported);
  CHECK(api.use_system_thread_ids() == Result::kNotSupported);
}

TEST_CASE("V2 counts only as a whole") {
  CuptiFunctions functions = noting();
  functions.ActivityPopExternalCorrelationId_v2 = nullptr;
  CHECK_FALSE(ActivityApi(functions).has_v2());
}
