#include "capture/subscription.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace collector::capture {
namespace {

using cupti::ActivityKind;
using cupti::Failure;
using cupti::Feature;
using cupti::Result;

// CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM: Linux thread ids instead of pthread_self.
constexpr uint32_t kThreadIdSystem = 1;

// API calls that frameworks make very often and that carry no information: the calls that Kineto leaves out, and the
// error queries.
constexpr const char* kNoisyCalls[] = {"cudaGetDevice",       "cudaSetDevice",        "cudaGetLastError",
                                       "cudaPeekAtLastError", "cuCtxGetCurrent",      "cuCtxGetDevice",
                                       "cuCtxSetCurrent",     "cuKernelGetAttribute", "cuDevicePrimaryCtxGetState"};

}  // namespace

std::optional<Failure> Subscription::open(const cupti::Library& library, bool share, cupti::BufferRequested on_request,
                                          cupti::BufferCompleted on_complete, cupti::SubscriberCallback on_callback) {
  library_ = &library;
  if (auto failure = subscribe(share, on_callback)) return failure;
  enable_graph_callbacks();
  set_attributes();
  // CUPTI needs the callbacks before the first kind is enabled. If a kind stayed on, its callbacks are still
  // registered.
  if (kernels_left_on_ == library_) return std::nullopt;
  const Result result = library_->cupti().ActivityRegisterCallbacks(on_request, on_complete);
  if (result == Result::kSuccess) return std::nullopt;
  return cupti::describe("cuptiActivityRegisterCallbacks", result, library_->text_of(result));
}

void Subscription::set_attributes() {
  // All attributes are optional: a library that refuses one is used without it.
  const auto set_flag = [this](cupti::Attribute attribute, uint8_t value) {
    if (library_->cupti().ActivitySetAttribute == nullptr) return;
    size_t bytes = sizeof(value);
    library_->cupti().ActivitySetAttribute(attribute, &bytes, &value);
  };
  // Our buffers are zeroed already; without this attribute CUPTI zeroes each buffer in the thread that requested it.
  set_flag(cupti::Attribute::kZeroedOutActivityBuffer, 1);
  if (library_->has(Feature::kPerThreadBuffers)) {
    // Set explicitly, because another client may have changed it.
    set_flag(cupti::Attribute::kPerThreadActivityBuffer, library_->has(Feature::kPerThreadBuffersByDefault) ? 1 : 0);
  }
  if (library_->cupti().SetThreadIdType != nullptr) library_->cupti().SetThreadIdType(kThreadIdSystem);
}

std::optional<Failure> Subscription::subscribe(bool share, cupti::SubscriberCallback on_callback) {
  is_shared_ = false;
  handle_ = nullptr;
  const Result result = library_->cupti().Subscribe(&handle_, on_callback, nullptr);
  if (result == Result::kSuccess) return std::nullopt;
  handle_ = nullptr;
  if (result == Result::kMultipleSubscribersNotSupported && share) {
    is_shared_ = true;
    return std::nullopt;
  }
  Failure failure = cupti::describe("cuptiSubscribe", result, library_->text_of(result));
  if (result == Result::kMultipleSubscribersNotSupported && library_->has(Feature::kHolderName)) {
    // The V2 call is refused too, but returns the holder's name. It is made only in order to fail: a successful V2
    // subscription would forbid V1.
    std::array<char, 128> holder{};
    cupti::SubscriberParams params{};
    params.struct_size = library_->cuda_version() >= 13020 ? 40 : 32;
    params.subscriber_name = "cupti-collector";
    params.holder_name = holder.data();
    params.holder_name_bytes = holder.size();
    void* refused = nullptr;
    const Result again = library_->cupti().Subscribe_v2(&refused, on_callback, nullptr, &params);
    if (again == Result::kSuccess) library_->cupti().Unsubscribe(refused);
    if (holder[0] != '\0') failure.cause += "; it is \"" + std::string(holder.data()) + "\"";
  }
  return failure;
}

void Subscription::enable_graph_callbacks() {
  using Callback = cupti::ResourceCallback;
  constexpr Callback kWanted[] = {Callback::kGraphNodeCreated,     Callback::kGraphExecCreated,
                                  Callback::kGraphNodeCloned,      Callback::kGraphExecDestroyStarting,
                                  Callback::kGraphDestroyStarting, Callback::kGraphNodeUpdated,
                                  Callback::kGraphNodeSetParams};
  if (handle_ == nullptr || library_->cupti().EnableCallback == nullptr) return;
  for (const Callback callback : kWanted) {
    const bool is_update = callback == Callback::kGraphNodeUpdated || callback == Callback::kGraphNodeSetParams;
    if (is_update && !library_->has(Feature::kGraphUpdates)) continue;
    // A library that refuses one is used without it: its graphs have only the annotation of their launch.
    library_->cupti().EnableCallback(1, handle_, cupti::kResourceDomain, static_cast<uint32_t>(callback));
  }
}

std::optional<Failure> Subscription::watch_profiler_calls() {
  using cupti::CallbackDomain;
  constexpr std::pair<CallbackDomain, uint32_t> kWatched[] = {
      {CallbackDomain::kDriverApi, cupti::kProfilerStartCall},
      {CallbackDomain::kDriverApi, cupti::kProfilerStopCall},
      {CallbackDomain::kRuntimeApi, cupti::kRuntimeProfilerStartCall},
      {CallbackDomain::kRuntimeApi, cupti::kRuntimeProfilerStopCall},
  };
  const auto enable = library_->cupti().EnableCallback;
  if (handle_ == nullptr || enable == nullptr) {
    return Failure{cupti::FailureKind::kCuptiCall,
                   "calls of cuProfilerStart cannot be seen: another client of CUPTI has the subscription",
                   "End the other profiler, or use --capture-range=nvtx:NAME"};
  }
  for (const auto& [domain, id] : kWatched) {
    const Result result = enable(1, handle_, static_cast<uint32_t>(domain), id);
    if (result != Result::kSuccess) return cupti::describe("cuptiEnableCallback", result, library_->text_of(result));
  }
  return std::nullopt;
}

void Subscription::close() {
  if (handle_ != nullptr) library_->cupti().Unsubscribe(handle_);
  handle_ = nullptr;
}

std::optional<Failure> Subscription::enable(const std::vector<ActivityKind>& kinds) {
  for (const ActivityKind kind : kinds) {
    if (is_enabled(kind)) continue;
    if (kind == ActivityKind::kConcurrentKernel && kernels_left_on_ == library_) continue;
    // Objects that are created once often exist before the session, so their records are dumped too.
    const auto dump = cupti::is_made_once(kind) ? library_->cupti().ActivityEnableAndDump : nullptr;
    const Result result = dump != nullptr ? dump(kind) : library_->cupti().ActivityEnable(kind);
    if (result == Result::kInvalidKind) continue;  // a kind that this older library does not have
    if (result != Result::kSuccess) return cupti::describe("cuptiActivityEnable", result, library_->text_of(result));
    enabled_.push_back(kind);
  }
  leave_out_noisy_calls();
  return std::nullopt;
}

bool Subscription::record_whole_graphs() {
  constexpr ActivityKind kKind = ActivityKind::kGraphTrace;
  if (is_enabled(kKind) || library_->cupti().ActivityEnable(kKind) != Result::kSuccess) return false;
  enabled_.push_back(kKind);
  return true;
}

void Subscription::disable() {
  for (auto kind = enabled_.rbegin(); kind != enabled_.rend(); ++kind) disable_kind(*kind);
  enabled_.clear();
}

void Subscription::disable(const std::vector<ActivityKind>& kinds) {
  for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) {
    const auto found = std::find(enabled_.begin(), enabled_.end(), *kind);
    if (found == enabled_.end()) continue;
    disable_kind(*kind);
    enabled_.erase(found);
  }
}

void Subscription::disable_kind(ActivityKind kind) {
  if (kind == ActivityKind::kConcurrentKernel && !library_->has(Feature::kDisablingKernelsIsSafe)) {
    // Disabling can deadlock in 13.0.48. There the kind stays enabled, and its buffers are declined between sessions.
    kernels_left_on_ = library_;
    return;
  }
  library_->cupti().ActivityDisable(kind);
}

bool Subscription::is_enabled(ActivityKind kind) const {
  return std::find(enabled_.begin(), enabled_.end(), kind) != enabled_.end();
}

void Subscription::leave_out_noisy_calls() {
  // Enabling a kind resets its filter, so this runs afterwards.
  const auto filter = [this](cupti::CallbackDomain domain, Result (*set)(uint32_t, uint8_t)) {
    for (const uint32_t id : noisy_calls(domain)) set(id, 0);
  };
  if (library_->has(Feature::kApiFilters)) {
    if (is_enabled(ActivityKind::kRuntime)) {
      filter(cupti::CallbackDomain::kRuntimeApi, library_->cupti().ActivityEnableRuntimeApi);
    }
    if (is_enabled(ActivityKind::kDriver)) {
      filter(cupti::CallbackDomain::kDriverApi, library_->cupti().ActivityEnableDriverApi);
    }
  }
  if (library_->has(Feature::kSyncRecordFilter) && is_enabled(ActivityKind::kSynchronization)) {
    library_->cupti().ActivityEnableAllSyncRecords(0);  // polling a busy event would flood the buffers
  }
}

// The ids are found by name, which is reliable in all versions so far.
const std::vector<uint32_t>& Subscription::noisy_calls(cupti::CallbackDomain domain) {
  constexpr uint32_t kIds = 1024;
  if (noisy_calls_of_ != library_) noisy_calls_.clear();
  noisy_calls_of_ = library_;
  const auto [found, is_new] = noisy_calls_.try_emplace(domain);
  for (uint32_t id = 1; is_new && id < kIds; ++id) {
    const std::string name = library_->callback_name(domain, id);
    if (std::find(std::begin(kNoisyCalls), std::end(kNoisyCalls), name) != std::end(kNoisyCalls)) {
      found->second.push_back(id);
    }
  }
  return found->second;
}

}  // namespace collector::capture
