#include "cupti/activity_api.h"

#include <array>
#include <string_view>

#include "cupti/process_use.h"

namespace collector::cupti {
namespace {

constexpr uint32_t kSystemThreadIds = 1;  // CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM: Linux thread ids, not pthread_self

template <typename Function, typename... Arguments>
Result call(Function function, Arguments... arguments) noexcept {
  return function == nullptr ? Result::kNotSupported : function(arguments...);
}

// The name that a client gave, or "": 13.0.85 says "CUPTI for NAME", and "CUPTI for <not provided>" of a client that
// gave none.
std::string own_name(std::string_view described) {
  constexpr std::string_view kBefore = "CUPTI for ";
  if (described.substr(0, kBefore.size()) == kBefore) described.remove_prefix(kBefore.size());
  return described == "<not provided>" ? "" : std::string(described);
}

}  // namespace

bool ActivityApi::has_v2() const noexcept {
  return cupti_.Subscribe_v2 != nullptr && cupti_.GetTimestamp_v2 != nullptr &&
         cupti_.ActivityRegisterCallbacks_v2 != nullptr && cupti_.ActivityEnable_v2 != nullptr &&
         cupti_.ActivityEnableAndDump_v2 != nullptr && cupti_.ActivityDisable_v2 != nullptr &&
         cupti_.ActivityGetNextRecord_v2 != nullptr && cupti_.ActivityGetNumDroppedRecords_v2 != nullptr &&
         cupti_.ActivityGetAttribute_v2 != nullptr && cupti_.ActivitySetAttribute_v2 != nullptr &&
         cupti_.ActivityPushExternalCorrelationId_v2 != nullptr &&
         cupti_.ActivityPopExternalCorrelationId_v2 != nullptr && cupti_.ActivityEnableRuntimeApi_v2 != nullptr &&
         cupti_.ActivityEnableDriverApi_v2 != nullptr;
}

Result ActivityApi::subscribe_v2(SubscriberParams& params, SubscriberCallback callback, void** subscriber,
                                 std::string& holder) const {
  std::array<char, 128> name{};
  params.subscriber_name = "cupti-collector";
  params.holder_name = name.data();
  params.holder_name_bytes = name.size();
  const Result result = call(cupti_.Subscribe_v2, subscriber, callback, nullptr, &params);
  holder = own_name(name.data());
  return result;
}

Result ActivityApi::join(SubscriberCallback callback, std::string& holder) {
  SubscriberParams params{};
  params.struct_size = sizeof(params);
  params.allow_multiple = 1;
  void* subscriber = nullptr;
  const Result result = subscribe_v2(params, callback, &subscriber, holder);
  if (result != Result::kSuccess) return result;
  first_subscriber_ = holder.empty() ? "a client without a name" : holder;
  subscriber_.store(subscriber, std::memory_order_release);
  return result;
}

std::string ActivityApi::holder(SubscriberCallback callback, int cuda) const {
  // The call is made only in order to fail: a successful V2 subscription would forbid V1.
  SubscriberParams params{};
  params.struct_size = cuda >= 13020 ? sizeof(params) : offsetof(SubscriberParams, allow_multiple);
  void* subscriber = nullptr;
  std::string holder;
  if (subscribe_v2(params, callback, &subscriber, holder) == Result::kSuccess) cupti_.Unsubscribe(subscriber);
  return holder;
}

Result ActivityApi::timestamp(uint64_t* time) const noexcept {
  if (out_of_use()) return Result::kNotInitialized;
  if (void* const ours = subscriber()) return cupti_.GetTimestamp_v2(ours, time);
  return call(cupti_.GetTimestamp, time);
}

Result ActivityApi::register_callbacks(const BufferCallbacks& callbacks) const noexcept {
  if (void* const ours = subscriber()) {
    return cupti_.ActivityRegisterCallbacks_v2(ours, callbacks.requested_v2, callbacks.completed_v2);
  }
  return cupti_.ActivityRegisterCallbacks(callbacks.requested, callbacks.completed);
}

Result ActivityApi::enable(ActivityKind kind) const noexcept {
  if (void* const ours = subscriber()) return cupti_.ActivityEnable_v2(ours, kind, nullptr);
  return cupti_.ActivityEnable(kind);
}

Result ActivityApi::enable_and_dump(ActivityKind kind) const noexcept {
  if (void* const ours = subscriber()) return cupti_.ActivityEnableAndDump_v2(ours, kind, nullptr);
  return cupti_.ActivityEnableAndDump != nullptr ? cupti_.ActivityEnableAndDump(kind) : cupti_.ActivityEnable(kind);
}

Result ActivityApi::disable(ActivityKind kind) const noexcept {
  if (void* const ours = subscriber()) return cupti_.ActivityDisable_v2(ours, kind, nullptr);
  return cupti_.ActivityDisable(kind);
}

Result ActivityApi::set_attribute(Attribute attribute, uint8_t value) const noexcept {
  size_t num_bytes = sizeof(value);
  if (void* const ours = subscriber()) return cupti_.ActivitySetAttribute_v2(ours, attribute, &num_bytes, &value);
  return call(cupti_.ActivitySetAttribute, attribute, &num_bytes, &value);
}

Result ActivityApi::use_system_thread_ids() const noexcept {
  void* const ours = subscriber();
  if (ours == nullptr) return call(cupti_.SetThreadIdType, kSystemThreadIds);
  uint32_t value = kSystemThreadIds;
  size_t num_bytes = sizeof(value);
  return cupti_.ActivitySetAttribute_v2(ours, Attribute::kThreadIdType, &num_bytes, &value);
}

Result ActivityApi::leave_out_call(CallbackDomain domain, uint32_t callback_id) const noexcept {
  const bool is_runtime = domain == CallbackDomain::kRuntimeApi;
  if (void* const ours = subscriber()) {
    return (is_runtime ? cupti_.ActivityEnableRuntimeApi_v2 : cupti_.ActivityEnableDriverApi_v2)(ours, callback_id, 0);
  }
  return call(is_runtime ? cupti_.ActivityEnableRuntimeApi : cupti_.ActivityEnableDriverApi, callback_id, uint8_t{0});
}

Result ActivityApi::leave_out_unfinished_waits() const noexcept {
  if (subscriber() != nullptr) return set_attribute(Attribute::kEnableAllSyncRecords, 0);
  return call(cupti_.ActivityEnableAllSyncRecords, uint8_t{0});
}

bool ActivityApi::records_whole_graphs() const noexcept {
  void* const ours = subscriber();
  uint8_t value = 0;
  size_t num_bytes = sizeof(value);
  return ours != nullptr &&
         cupti_.ActivityGetAttribute_v2(ours, Attribute::kEnableMultiSubscriberGraphTrace, &num_bytes, &value) ==
             Result::kSuccess &&
         value == 1;
}

Result ActivityApi::next_record(uint8_t* buffer, size_t num_bytes, uint8_t** record) const noexcept {
  if (void* const ours = subscriber()) return cupti_.ActivityGetNextRecord_v2(ours, buffer, num_bytes, record);
  return call(cupti_.ActivityGetNextRecord, buffer, num_bytes, record);
}

size_t ActivityApi::take_num_dropped() const noexcept {
  size_t num_dropped = 0;
  if (void* const ours = subscriber()) {
    cupti_.ActivityGetNumDroppedRecords_v2(ours, nullptr, 0, &num_dropped);
  } else {
    call(cupti_.ActivityGetNumDroppedRecords, nullptr, uint32_t{0}, &num_dropped);
  }
  return num_dropped;
}

bool ActivityApi::has_external_correlation() const noexcept {
  return subscriber() != nullptr ||
         (cupti_.ActivityPushExternalCorrelationId != nullptr && cupti_.ActivityPopExternalCorrelationId != nullptr);
}

Result ActivityApi::push_external_id(uint64_t id) const noexcept {
  if (out_of_use()) return Result::kNotInitialized;
  constexpr auto kKind = ExternalCorrelationKind::kCustom2;
  if (void* const ours = subscriber()) return cupti_.ActivityPushExternalCorrelationId_v2(ours, kKind, id);
  return call(cupti_.ActivityPushExternalCorrelationId, kKind, id);
}

Result ActivityApi::pop_external_id(uint64_t* id) const noexcept {
  if (out_of_use()) return Result::kNotInitialized;
  constexpr auto kKind = ExternalCorrelationKind::kCustom2;
  if (void* const ours = subscriber()) return cupti_.ActivityPopExternalCorrelationId_v2(ours, kKind, id);
  return call(cupti_.ActivityPopExternalCorrelationId, kKind, id);
}

}  // namespace collector::cupti
