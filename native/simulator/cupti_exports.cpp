// libcupti's functions for tracers.
#include <array>
#include <cstdio>
#include <cstring>

#include "simulator/device_limits.h"
#include "simulator/exports.h"

namespace {

using collector::cupti::ActivityKind;
using collector::cupti::Attribute;
using collector::cupti::Result;
using collector::simulator::CallbackName;
using collector::simulator::Context;
using collector::simulator::cupti_call;
using collector::simulator::function_index;
using collector::simulator::kCallbackNames;
using collector::simulator::kFutureKind;
using collector::simulator::kFutureKindBytes;
using collector::simulator::kLastKind;
using collector::simulator::kNullStream;
using collector::simulator::Logged;
using collector::simulator::Misuse;
using collector::simulator::Simulator;
using collector::simulator::stride_of;
using collector::simulator::SubscriberCallback;

struct ResultText {
  uint32_t code;
  int since_cuda;
  const char* name;
  const char* message;
};

// The name of a function that the simulated program does not call, of the usual length. The text stays.
const char* made_up_name(bool is_runtime, uint32_t id) {
  using Names = std::array<std::array<char, 32>, collector::simulator::kRuntimeFunctions>;
  static const auto* const names = [] {
    auto* const all = new std::array<Names, 2>();
    for (size_t runtime = 0; runtime < 2; ++runtime) {
      const char* const form = runtime == 1 ? "cudaFunction%04u_v12000" : "cuFunctionOfTheDriver%04u";
      for (size_t at = 0; at < collector::simulator::kRuntimeFunctions; ++at) {
        std::array<char, 32>& name = (*all)[runtime][at];
        std::snprintf(name.data(), name.size(), form, static_cast<unsigned>(at + 1));
      }
    }
    return all;
  }();
  return (*names)[is_runtime ? 1 : 0][id - 1].data();
}

constexpr ResultText kResultTexts[] = {
    {0, 12000, "CUPTI_SUCCESS", "no error"},
    {1, 12000, "CUPTI_ERROR_INVALID_PARAMETER", "one or more parameters are invalid"},
    {2, 12000, "CUPTI_ERROR_INVALID_DEVICE", "the device is not a valid CUDA device"},
    {3, 12000, "CUPTI_ERROR_INVALID_CONTEXT", "the context is not valid"},
    {7, 12000, "CUPTI_ERROR_INVALID_OPERATION", "the operation is not possible in the current state"},
    {8, 12000, "CUPTI_ERROR_OUT_OF_MEMORY", "not enough memory"},
    {11, 12000, "CUPTI_ERROR_API_NOT_IMPLEMENTED", "the function is not implemented"},
    {12, 12000, "CUPTI_ERROR_MAX_LIMIT_REACHED", "no more records"},
    {13, 12000, "CUPTI_ERROR_NOT_READY", "not ready"},
    {14, 12000, "CUPTI_ERROR_NOT_COMPATIBLE", "not compatible with what is enabled"},
    {15, 12000, "CUPTI_ERROR_NOT_INITIALIZED", "CUPTI could not be initialized"},
    {18, 12000, "CUPTI_ERROR_QUEUE_EMPTY", "the queue is empty"},
    {21, 12000, "CUPTI_ERROR_INVALID_KIND", "the activity kind is not valid"},
    {23, 12000, "CUPTI_ERROR_DISABLED", "disabled"},
    {27, 12000, "CUPTI_ERROR_NOT_SUPPORTED", "not supported here"},
    {33, 12000, "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED", "not supported on a virtual GPU"},
    {35, 12000, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "the user lacks the privilege"},
    {39, 12000, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "another client is subscribed"},
    {40, 12000, "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES", "the virtual GPU lacks the privilege"},
    {41, 12000, "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", "not supported with confidential computing"},
    {42, 12000, "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED", "not supported on a mining device"},
    {43, 12080, "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED", "not supported on a MIG device"},
    {44, 12080, "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED", "not supported on SLI devices"},
    {45, 12080, "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED", "not supported under WSL"},
    {999, 12000, "CUPTI_ERROR_UNKNOWN", "an unknown error"},
};

const ResultText* result_text(uint32_t code, int cuda) {
  for (const ResultText& row : kResultTexts) {
    if (row.code == code && row.since_cuda <= cuda) return &row;
  }
  return nullptr;
}

// CUPTI keeps the last error per thread.
thread_local uint32_t last_error = 0;

template <typename Body>
uint32_t call(size_t function, uint32_t argument, Logged logged, Body body) {
  const uint32_t result = cupti_call(function, argument, logged, body);
  if (result != 0) last_error = result;
  return result;
}

// Attributes are 1, 4 or 8 bytes wide.
size_t attribute_bytes(uint32_t attribute) {
  switch (static_cast<Attribute>(attribute)) {
    case Attribute::kZeroedOutActivityBuffer:
    case Attribute::kMemAllocationTypeHostPinned:
    case Attribute::kPerThreadActivityBuffer:
    case Attribute::kEnableAllSyncRecords:
    case Attribute::kEnableMultiSubscriberGraphTrace:
      return 1;
    case Attribute::kThreadIdType:
      return 4;
    default:
      return 8;
  }
}

// The bytes that GetNextRecord of this version steps over for a kind; 0 for a kind that it does not know.
uint32_t step_of(uint32_t kind, int cuda) { return kind == kFutureKind ? kFutureKindBytes : stride_of(kind, cuda); }

// A function of the Activity API that exists for the process and for a subscriber. `subscriber` null: for the process.
template <typename Body>
uint32_t activity_call(const char* name, const void* subscriber, uint32_t argument, Logged logged, Body body) {
  return call(function_index(name), argument, logged, [&](Simulator& simulator) {
    const Result result = simulator.use_form(subscriber);
    return result != Result::kSuccess ? result : body(simulator);
  });
}

// The subscriber of a V2 function, which must not be null.
const void* of(const void* subscriber) {
  static const char nobody = 0;
  return subscriber != nullptr ? subscriber : &nobody;
}

Result register_callbacks(Simulator& simulator, bool are_given) {
  if (!are_given) return Result::kInvalidParameter;
  for (uint32_t kind = 1; kind <= kLastKind; ++kind) {
    if (!simulator.enabled(static_cast<ActivityKind>(kind))) continue;
    simulator.misuses.count(Misuse::kCallbacksAfterEnable);
    break;
  }
  return Result::kSuccess;
}

Result enable_and_dump(Simulator& simulator, uint32_t kind) {
  const Result result = simulator.enable(kind);
  if (result == Result::kSuccess) simulator.dump(static_cast<ActivityKind>(kind));
  return result;
}

Result next_record(const Simulator& simulator, uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  if (buffer == nullptr || record == nullptr) return Result::kInvalidParameter;
  const int cuda = simulator.release.cuda;
  uint8_t* next = buffer;
  uint32_t kind = 0;
  if (*record != nullptr) {
    std::memcpy(&kind, *record, sizeof kind);
    const uint32_t step = step_of(kind, cuda);
    if (step == 0) return Result::kInvalidKind;
    next = *record + step;
  }
  const size_t left = valid_bytes - static_cast<size_t>(next - buffer);
  if (static_cast<size_t>(next - buffer) >= valid_bytes || left < sizeof kind) return Result::kMaxLimitReached;
  std::memcpy(&kind, next, sizeof kind);
  const uint32_t step = step_of(kind, cuda);
  if (step == 0) return Result::kInvalidKind;
  if (step > left) return Result::kMaxLimitReached;
  *record = next;
  return Result::kSuccess;
}

Result take_dropped(Simulator& simulator, size_t* dropped) {
  if (dropped == nullptr) return Result::kInvalidParameter;
  *dropped = simulator.buffers.take_dropped();
  return Result::kSuccess;
}

Result get_attribute(const Simulator& simulator, uint32_t attribute, size_t* bytes, void* value) {
  if (bytes == nullptr || value == nullptr || *bytes < attribute_bytes(attribute)) return Result::kInvalidParameter;
  uint64_t wide = 0;
  const Result result = simulator.attribute(attribute, &wide);
  *bytes = attribute_bytes(attribute);
  if (result == Result::kSuccess) std::memcpy(value, &wide, *bytes);
  return result;
}

Result set_attribute(Simulator& simulator, uint32_t attribute, const size_t* bytes, const void* value) {
  if (bytes == nullptr || value == nullptr || *bytes != attribute_bytes(attribute)) return Result::kInvalidParameter;
  uint64_t wide = 0;
  std::memcpy(&wide, value, *bytes);
  return simulator.set_attribute(attribute, wide);
}

Result push_external_id(Simulator& simulator, uint32_t kind, uint64_t id) {
  if (kind == 0 || kind > 5) return Result::kInvalidParameter;
  simulator.thread().external_ids[kind].push_back(id);
  return Result::kSuccess;
}

Result pop_external_id(Simulator& simulator, uint32_t kind, uint64_t* last) {
  auto& stacks = simulator.thread().external_ids;
  if (kind == 0 || kind > 5) return Result::kInvalidParameter;
  if (stacks[kind].empty()) return Result::kQueueEmpty;
  if (last != nullptr) *last = stacks[kind].back();
  stacks[kind].pop_back();
  return Result::kSuccess;
}

Result timestamp(const Simulator& simulator, uint64_t* time) {
  if (time == nullptr) return Result::kInvalidParameter;
  *time = static_cast<uint64_t>(simulator.cupti_now());
  return Result::kSuccess;
}

}  // namespace

SIMULATOR_EXPORT uint32_t cuptiGetVersion(uint32_t* version) {
  return call(function_index("cuptiGetVersion"), 0, Logged::kYes, [&](Simulator& simulator) {
    if (version == nullptr) return Result::kInvalidParameter;
    *version = simulator.release.api_version;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetResultString(uint32_t result, const char** text) {
  return call(function_index("cuptiGetResultString"), 0, Logged::kNo, [&](Simulator& simulator) {
    const ResultText* row = result_text(result, simulator.release.cuda);
    if (text == nullptr || row == nullptr) return Result::kInvalidParameter;
    *text = row->name;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetErrorMessage(uint32_t result, const char** text) {
  return call(function_index("cuptiGetErrorMessage"), 0, Logged::kNo, [&](Simulator& simulator) {
    const ResultText* row = result_text(result, simulator.release.cuda);
    if (text == nullptr || row == nullptr) return Result::kInvalidParameter;
    *text = row->message;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetLastError() {
  const uint32_t result = last_error;
  last_error = 0;
  return result;
}

// Asking for the time chooses no form; from 13.3 on, the other form refuses it.
SIMULATOR_EXPORT uint32_t cuptiGetTimestamp(uint64_t* time) {
  return call(function_index("cuptiGetTimestamp"), 0, Logged::kNo, [&](Simulator& simulator) {
    if (simulator.release.cuda >= 13030 && simulator.is_of_subscribers()) return Result::kNotCompatible;
    return timestamp(simulator, time);
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetTimestamp_v2(void* subscriber, uint64_t* time) {
  return activity_call("cuptiGetTimestamp_v2", of(subscriber), 0, Logged::kNo,
                       [&](Simulator& simulator) { return timestamp(simulator, time); });
}

SIMULATOR_EXPORT uint32_t cuptiComputeCapabilitySupported(int major, int /*minor*/, int* support) {
  return call(function_index("cuptiComputeCapabilitySupported"), 0, Logged::kNo, [&](Simulator& simulator) {
    if (support == nullptr) return Result::kInvalidParameter;
    *support = major >= (simulator.release.cuda >= 13000 ? 7 : 5) ? 2 : 0;
    return Result::kSuccess;
  });
}

// -- Subscription -----------------------------------------------------------------------------------------------------

SIMULATOR_EXPORT uint32_t cuptiSubscribe(void** subscriber, SubscriberCallback callback, void* userdata) {
  return call(function_index("cuptiSubscribe"), 0, Logged::kYes, [&](Simulator& simulator) {
    if (subscriber == nullptr) return Result::kInvalidParameter;
    std::string holder;
    return simulator.subscribe(subscriber, {callback, userdata, "", false}, holder);
  });
}

struct SubscriberParams {
  size_t struct_size;
  const char* subscriber_name;
  char* old_subscriber_name;
  size_t old_subscriber_size;
  uint8_t allow_multiple_subscribers;  // since 13.2
  uint8_t padding[7];
};
static_assert(sizeof(SubscriberParams) == 40);

SIMULATOR_EXPORT uint32_t cuptiSubscribe_v2(void** subscriber, SubscriberCallback callback, void* userdata,
                                            SubscriberParams* params) {
  return call(function_index("cuptiSubscribe_v2"), 0, Logged::kYes, [&](Simulator& simulator) {
    const size_t expected = simulator.release.cuda >= 13020 ? 40 : 32;
    if (subscriber == nullptr || params == nullptr || params->struct_size != expected) return Result::kInvalidParameter;
    const bool allows_others = expected == 40 && params->allow_multiple_subscribers == 1;
    const std::string name = params->subscriber_name != nullptr ? params->subscriber_name : "";
    std::string holder;
    const Result result = simulator.subscribe(subscriber, {callback, userdata, name, allows_others}, holder);
    if (params->old_subscriber_name != nullptr && params->old_subscriber_size > 0) {
      const size_t length = std::min(holder.size(), params->old_subscriber_size - 1);
      std::memcpy(params->old_subscriber_name, holder.data(), length);
      params->old_subscriber_name[length] = '\0';
    }
    return result;
  });
}

SIMULATOR_EXPORT uint32_t cuptiUnsubscribe(void* subscriber) {
  return call(function_index("cuptiUnsubscribe"), 0, Logged::kYes,
              [&](Simulator& simulator) { return simulator.subscribers.unsubscribe(subscriber); });
}

SIMULATOR_EXPORT uint32_t cuptiEnableCallback(uint32_t enable, void* subscriber, uint32_t domain, uint32_t id) {
  return call(function_index("cuptiEnableCallback"), id, Logged::kYes, [&](Simulator& simulator) {
    return simulator.subscribers.enable_callbacks(enable != 0, subscriber, domain, id);
  });
}

SIMULATOR_EXPORT uint32_t cuptiEnableDomain(uint32_t enable, void* subscriber, uint32_t domain) {
  return call(function_index("cuptiEnableDomain"), domain, Logged::kYes, [&](Simulator& simulator) {
    return simulator.subscribers.enable_callbacks(enable != 0, subscriber, domain, -1);
  });
}

SIMULATOR_EXPORT uint32_t cuptiEnableAllDomains(uint32_t enable, void* subscriber) {
  return call(function_index("cuptiEnableAllDomains"), 0, Logged::kYes, [&](Simulator& simulator) {
    simulator.subscribers.enable_callbacks(enable != 0, subscriber, 1, -1);
    return simulator.subscribers.enable_callbacks(enable != 0, subscriber, 2, -1);
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetContextId(Context* context, uint32_t* id) {
  return call(function_index("cuptiGetContextId"), 0, Logged::kNo, [&](Simulator&) {
    if (context == nullptr || id == nullptr) return Result::kInvalidParameter;
    *id = context->id;
    return Result::kSuccess;
  });
}

// A stream's handle is its number; null is the default stream.
SIMULATOR_EXPORT uint32_t cuptiGetStreamIdEx(Context*, void* stream, uint8_t, uint32_t* id) {
  return call(function_index("cuptiGetStreamIdEx"), 0, Logged::kNo, [&](Simulator&) {
    if (id == nullptr) return Result::kInvalidParameter;
    *id = stream == nullptr ? kNullStream : static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream));
    return Result::kSuccess;
  });
}

// An executable graph is taken too, as by versions without cuptiGetGraphExecId.
SIMULATOR_EXPORT uint32_t cuptiGetGraphId(void* graph, uint32_t* id) {
  return call(function_index("cuptiGetGraphId"), 0, Logged::kNo, [&](Simulator& simulator) {
    const auto* const found = simulator.graphs.graph(graph);
    const auto* const executable = simulator.graphs.executable(graph);
    if (id == nullptr || (found == nullptr && executable == nullptr)) return Result::kInvalidParameter;
    *id = found != nullptr ? found->id : executable->id;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetGraphExecId(void* executable, uint32_t* id) {
  return call(function_index("cuptiGetGraphExecId"), 0, Logged::kNo, [&](Simulator& simulator) {
    const auto* const found = simulator.graphs.executable(executable);
    if (id == nullptr || found == nullptr) return Result::kInvalidParameter;
    *id = found->id;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetGraphNodeId(void* node, uint64_t* id) {
  return call(function_index("cuptiGetGraphNodeId"), 0, Logged::kNo, [&](Simulator& simulator) {
    const auto* const found = simulator.graphs.node(node);
    if (id == nullptr || found == nullptr) return Result::kInvalidParameter;
    *id = found->id;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetCallbackName(uint32_t domain, uint32_t id, const char** name) {
  return call(function_index("cuptiGetCallbackName"), id, Logged::kNo, [&](Simulator&) {
    if (name == nullptr) return Result::kInvalidParameter;
    for (const CallbackName& row : kCallbackNames) {
      if (static_cast<uint32_t>(row.domain) != domain || row.id != id) continue;
      *name = row.name;
      return Result::kSuccess;
    }
    const bool is_runtime = domain == static_cast<uint32_t>(collector::cupti::CallbackDomain::kRuntimeApi);
    const bool is_driver = domain == static_cast<uint32_t>(collector::cupti::CallbackDomain::kDriverApi);
    const uint32_t count =
        is_runtime ? collector::simulator::kRuntimeFunctions : (is_driver ? collector::simulator::kDriverFunctions : 0);
    if (id == 0 || id > count) return Result::kInvalidParameter;
    *name = made_up_name(is_runtime, id);
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiFinalize() {
  return call(function_index("cuptiFinalize"), 0, Logged::kYes, [&](Simulator& simulator) {
    if (simulator.release.cuda < 12060 && simulator.graph_launches.load() > 0) {
      simulator.misuses.count(Misuse::kFinalize);
    }
    for (uint32_t kind = 1; kind <= kLastKind; ++kind) simulator.disable(kind);
    return Result::kSuccess;
  });
}

// -- Activity --------------------------------------------------------------------------------------------------------

SIMULATOR_EXPORT uint32_t cuptiActivityRegisterCallbacks(collector::simulator::RequestCallback request,
                                                         collector::simulator::CompleteCallback complete) {
  return activity_call("cuptiActivityRegisterCallbacks", nullptr, 0, Logged::kYes, [&](Simulator& simulator) {
    const Result result = register_callbacks(simulator, request != nullptr && complete != nullptr);
    if (result == Result::kSuccess) simulator.buffers.set_callbacks(request, complete);
    return result;
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityRegisterCallbacks_v2(void* subscriber,
                                                            collector::simulator::SubscriberRequestCallback request,
                                                            collector::simulator::SubscriberCompleteCallback complete) {
  return activity_call("cuptiActivityRegisterCallbacks_v2", of(subscriber), 0, Logged::kYes, [&](Simulator& simulator) {
    const Result result = register_callbacks(simulator, request != nullptr && complete != nullptr);
    if (result == Result::kSuccess) simulator.buffers.set_callbacks(request, complete);
    return result;
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnable(uint32_t kind) {
  return activity_call("cuptiActivityEnable", nullptr, kind, Logged::kYes,
                       [&](Simulator& simulator) { return simulator.enable(kind); });
}

// The last argument of these three chooses fields; null is all.
SIMULATOR_EXPORT uint32_t cuptiActivityEnable_v2(void* subscriber, uint32_t kind, const void* config) {
  return activity_call("cuptiActivityEnable_v2", of(subscriber), kind, Logged::kYes, [&](Simulator& simulator) {
    return config != nullptr ? Result::kNotSupported : simulator.enable(kind);
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableAndDump(uint32_t kind) {
  return activity_call("cuptiActivityEnableAndDump", nullptr, kind, Logged::kYes,
                       [&](Simulator& simulator) { return enable_and_dump(simulator, kind); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableAndDump_v2(void* subscriber, uint32_t kind, const void* config) {
  return activity_call("cuptiActivityEnableAndDump_v2", of(subscriber), kind, Logged::kYes, [&](Simulator& simulator) {
    return config != nullptr ? Result::kNotSupported : enable_and_dump(simulator, kind);
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityDisable(uint32_t kind) {
  return activity_call("cuptiActivityDisable", nullptr, kind, Logged::kYes,
                       [&](Simulator& simulator) { return simulator.disable(kind); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityDisable_v2(void* subscriber, uint32_t kind, const void*) {
  return activity_call("cuptiActivityDisable_v2", of(subscriber), kind, Logged::kYes,
                       [&](Simulator& simulator) { return simulator.disable(kind); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityFlushAll(uint32_t flag) {
  return call(function_index("cuptiActivityFlushAll"), flag, Logged::kYes,
              [&](Simulator& simulator) { return simulator.flush((flag & 1) != 0); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityFlushPeriod(uint32_t milliseconds) {
  return call(function_index("cuptiActivityFlushPeriod"), milliseconds, Logged::kYes, [&](Simulator& simulator) {
    simulator.set_flush_period(milliseconds);
    return Result::kSuccess;
  });
}

// Reading a buffer chooses no form either.
SIMULATOR_EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  return call(function_index("cuptiActivityGetNextRecord"), 0, Logged::kNo, [&](Simulator& simulator) {
    if (simulator.release.cuda >= 13030 && simulator.is_of_subscribers()) return Result::kNotCompatible;
    return next_record(simulator, buffer, valid_bytes, record);
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityGetNextRecord_v2(void* subscriber, uint8_t* buffer, size_t valid_bytes,
                                                        uint8_t** record) {
  return activity_call("cuptiActivityGetNextRecord_v2", of(subscriber), 0, Logged::kNo,
                       [&](Simulator& simulator) { return next_record(simulator, buffer, valid_bytes, record); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityGetStructSize(uint32_t kind, uint32_t /*version*/, size_t* bytes) {
  return call(function_index("cuptiActivityGetStructSize"), kind, Logged::kNo, [&](Simulator& simulator) {
    if (bytes == nullptr) return Result::kInvalidParameter;
    const uint32_t stride = stride_of(kind, simulator.release.cuda);
    if (stride == 0) return Result::kInvalidKind;
    *bytes = stride;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void* /*context*/, uint32_t /*stream*/, size_t* dropped) {
  return activity_call("cuptiActivityGetNumDroppedRecords", nullptr, 0, Logged::kYes,
                       [&](Simulator& simulator) { return take_dropped(simulator, dropped); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityGetNumDroppedRecords_v2(void* subscriber, void* /*context*/, uint32_t /*stream*/,
                                                               size_t* dropped) {
  return activity_call("cuptiActivityGetNumDroppedRecords_v2", of(subscriber), 0, Logged::kYes,
                       [&](Simulator& simulator) { return take_dropped(simulator, dropped); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityGetAttribute(uint32_t attribute, size_t* bytes, void* value) {
  return activity_call("cuptiActivityGetAttribute", nullptr, attribute, Logged::kYes,
                       [&](Simulator& simulator) { return get_attribute(simulator, attribute, bytes, value); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityGetAttribute_v2(void* subscriber, uint32_t attribute, size_t* bytes,
                                                       void* value) {
  return activity_call("cuptiActivityGetAttribute_v2", of(subscriber), attribute, Logged::kYes,
                       [&](Simulator& simulator) { return get_attribute(simulator, attribute, bytes, value); });
}

SIMULATOR_EXPORT uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t* bytes, void* value) {
  return activity_call("cuptiActivitySetAttribute", nullptr, attribute, Logged::kYes,
                       [&](Simulator& simulator) { return set_attribute(simulator, attribute, bytes, value); });
}

SIMULATOR_EXPORT uint32_t cuptiActivitySetAttribute_v2(void* subscriber, uint32_t attribute, size_t* bytes,
                                                       void* value) {
  return activity_call("cuptiActivitySetAttribute_v2", of(subscriber), attribute, Logged::kYes,
                       [&](Simulator& simulator) { return set_attribute(simulator, attribute, bytes, value); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  return activity_call("cuptiActivityPushExternalCorrelationId", nullptr, kind, Logged::kNo,
                       [&](Simulator& simulator) { return push_external_id(simulator, kind, id); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityPushExternalCorrelationId_v2(void* subscriber, uint32_t kind, uint64_t id) {
  return activity_call("cuptiActivityPushExternalCorrelationId_v2", of(subscriber), kind, Logged::kNo,
                       [&](Simulator& simulator) { return push_external_id(simulator, kind, id); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  return activity_call("cuptiActivityPopExternalCorrelationId", nullptr, kind, Logged::kNo,
                       [&](Simulator& simulator) { return pop_external_id(simulator, kind, last); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityPopExternalCorrelationId_v2(void* subscriber, uint32_t kind, uint64_t* last) {
  return activity_call("cuptiActivityPopExternalCorrelationId_v2", of(subscriber), kind, Logged::kNo,
                       [&](Simulator& simulator) { return pop_external_id(simulator, kind, last); });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t enable) {
  return activity_call("cuptiActivityEnableRuntimeApi", nullptr, id, Logged::kYes, [&](Simulator& simulator) {
    return simulator.filter_api(ActivityKind::kRuntime, id, enable != 0);
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableRuntimeApi_v2(void* subscriber, uint32_t id, uint8_t enable) {
  return activity_call("cuptiActivityEnableRuntimeApi_v2", of(subscriber), id, Logged::kYes, [&](Simulator& simulator) {
    return simulator.filter_api(ActivityKind::kRuntime, id, enable != 0);
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableDriverApi(uint32_t id, uint8_t enable) {
  return activity_call("cuptiActivityEnableDriverApi", nullptr, id, Logged::kYes, [&](Simulator& simulator) {
    return simulator.filter_api(ActivityKind::kDriver, id, enable != 0);
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableDriverApi_v2(void* subscriber, uint32_t id, uint8_t enable) {
  return activity_call("cuptiActivityEnableDriverApi_v2", of(subscriber), id, Logged::kYes, [&](Simulator& simulator) {
    return simulator.filter_api(ActivityKind::kDriver, id, enable != 0);
  });
}

// There is no V2 of these; a subscriber sets attributes instead.
SIMULATOR_EXPORT uint32_t cuptiActivityEnableAllSyncRecords(uint8_t enable) {
  return activity_call("cuptiActivityEnableAllSyncRecords", nullptr, enable, Logged::kYes, [&](Simulator& simulator) {
    simulator.all_sync_records.store(enable != 0);
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  return call(function_index("cuptiActivityEnableLatencyTimestamps"), enable, Logged::kYes, [&](Simulator& simulator) {
    simulator.latency_timestamps.store(enable != 0);
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityEnableLaunchAttributes(uint8_t enable) {
  return call(function_index("cuptiActivityEnableLaunchAttributes"), enable, Logged::kYes,
              [&](Simulator&) { return Result::kSuccess; });
}

// Clients distinguish 13.2 and 13.3 by its presence, before any call.
SIMULATOR_EXPORT uint32_t cuptiIsTracingSessionRunning(uint8_t* is_running) {
  return call(function_index("cuptiIsTracingSessionRunning"), 0, Logged::kYes, [&](Simulator& simulator) {
    if (is_running == nullptr) return Result::kInvalidParameter;
    *is_running = simulator.subscribers.any() ? 1 : 0;
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiActivityRegisterTimestampCallback(collector::simulator::TimestampCallback callback) {
  return call(function_index("cuptiActivityRegisterTimestampCallback"), 0, Logged::kYes,
              [&](Simulator& simulator) { return simulator.register_timestamps(callback); });
}

SIMULATOR_EXPORT uint32_t cuptiSetThreadIdType(uint32_t type) {
  return activity_call("cuptiSetThreadIdType", nullptr, type, Logged::kYes, [&](Simulator& simulator) {
    if (type > 1) return Result::kInvalidParameter;
    simulator.system_thread_ids.store(type == 1);
    return Result::kSuccess;
  });
}

SIMULATOR_EXPORT uint32_t cuptiGetThreadIdType(uint32_t* type) {
  return call(function_index("cuptiGetThreadIdType"), 0, Logged::kYes, [&](Simulator& simulator) {
    if (type == nullptr) return Result::kInvalidParameter;
    *type = simulator.system_thread_ids.load() ? 1 : 0;
    return Result::kSuccess;
  });
}
