#include "capture/subscription.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cupti/graph_update_calls.h"

namespace collector::capture {
namespace {

using cupti::ActivityKind;
using cupti::Failure;
using cupti::Feature;
using cupti::Result;

// API calls that are made very often and carry no information: the calls that Kineto leaves out, the error queries, and
// cuKernelGetName, which the runtime calls before each launch only because calls are traced (75 of 246 calls of a step
// of PyTorch 2.11 on an H100). And the calls by which our own NVTX handler finds the ids of a stream that is named.
constexpr const char* kNoisyCalls[] = {
    "cudaGetDevice",  "cudaSetDevice",   "cudaGetLastError",     "cudaPeekAtLastError",        "cuCtxGetCurrent",
    "cuCtxGetDevice", "cuCtxSetCurrent", "cuKernelGetAttribute", "cuDevicePrimaryCtxGetState", "cuKernelGetName",
    "cuStreamGetCtx", "cuCtxGetId",      "cuStreamGetId"};

}  // namespace

std::optional<Failure> Subscription::open(const cupti::Library& library, bool share,
                                          const cupti::BufferCallbacks& on_buffer,
                                          cupti::SubscriberCallback on_callback) {
  library_ = &library;
  if (auto failure = subscribe(share, on_callback)) return failure;
  Result result = set_up(on_buffer);
  // Where the client whose V2 excludes V1 has unsubscribed, V1 is refused only here.
  std::string holder;
  if (result == Result::kNotCompatible && join(on_callback, holder)) result = set_up(on_buffer);
  if (result == Result::kSuccess) return std::nullopt;
  return cupti::describe("cuptiActivityRegisterCallbacks", result, library_->text_of(result));
}

Result Subscription::set_up(const cupti::BufferCallbacks& on_buffer) {
  enable_graph_callbacks();
  set_attributes();
  // CUPTI needs the callbacks before the first kind is enabled. If a kind stayed on, its callbacks are still
  // registered.
  return kernels_left_on_ == library_ ? Result::kSuccess : api().register_callbacks(on_buffer);
}

void Subscription::set_attributes() {
  // All attributes are optional: a library that refuses one is used without it.
  // Our buffers are zeroed already; without this attribute CUPTI zeroes each buffer in the thread that requested it.
  api().set_attribute(cupti::Attribute::kZeroedOutActivityBuffer, 1);
  if (library_->has(Feature::kPerThreadBuffers)) {
    // Set explicitly, because another client may have changed it.
    api().set_attribute(cupti::Attribute::kPerThreadActivityBuffer,
                        library_->has(Feature::kPerThreadBuffersByDefault) ? 1 : 0);
  }
  api().use_system_thread_ids();
}

std::optional<Failure> Subscription::subscribe(bool share, cupti::SubscriberCallback on_callback) {
  is_shared_ = false;
  handle_ = api().subscriber();
  if (handle_ != nullptr) return std::nullopt;
  const Result result = library_->cupti().Subscribe(&handle_, on_callback, nullptr);
  if (result == Result::kSuccess) return std::nullopt;
  handle_ = nullptr;
  const bool is_held = result == Result::kMultipleSubscribersNotSupported;
  std::string holder;
  if ((is_held || result == Result::kNotCompatible) && join(on_callback, holder)) return std::nullopt;
  if (is_held && share) {
    is_shared_ = true;
    return std::nullopt;
  }
  if (is_held && holder.empty() && library_->has(Feature::kHolderName)) {
    holder = api().holder(on_callback, library_->cuda_version());
  }
  Failure failure = cupti::describe("cuptiSubscribe", result, library_->text_of(result));
  if (!holder.empty()) failure.cause += "; it is \"" + holder + "\"";
  return failure;
}

bool Subscription::join(cupti::SubscriberCallback on_callback, std::string& holder) {
  if (!library_->has(Feature::kSeveralSubscribers)) return false;
  // A subscription of V1 that can record nothing would exclude ours.
  if (handle_ != nullptr) library_->cupti().Unsubscribe(handle_);
  handle_ = nullptr;
  called_back_.clear();
  if (api().join(on_callback, holder) != Result::kSuccess) return false;
  handle_ = api().subscriber();
  library_->learn_strides();  // V1 does not report them once V2 was used
  return true;
}

Result Subscription::call_back(uint32_t domain, uint32_t id) {
  const Result result = library_->cupti().EnableCallback(1, handle_, domain, id);
  if (result == Result::kSuccess) called_back_.emplace_back(domain, id);
  return result;
}

void Subscription::enable_graph_callbacks() {
  using Callback = cupti::ResourceCallback;
  constexpr Callback kWanted[] = {
      Callback::kGraphNodeCreated,         Callback::kGraphExecCreated,        Callback::kGraphNodeCloned,
      Callback::kGraphExecDestroyStarting, Callback::kGraphDestroyStarting,    Callback::kGraphNodeUpdated,
      Callback::kGraphNodeSetParams,       Callback::kGraphExecCreateStarting, Callback::kGraphNodeDestroyStarting};
  if (handle_ == nullptr || library_->cupti().EnableCallback == nullptr) return;
  if (library_->has(Feature::kGraphUpdates)) {
    // Without them an update could leave a node the name of another capture.
    for (const cupti::GraphUpdateCall& call : cupti::kGraphUpdateCalls) {
      if (call_back(static_cast<uint32_t>(call.domain), call.id) != Result::kSuccess) return;
    }
  }
  for (const Callback callback : kWanted) {
    const bool is_update = callback == Callback::kGraphNodeUpdated || callback == Callback::kGraphNodeSetParams;
    if (is_update && !library_->has(Feature::kGraphUpdates)) continue;
    // A library that refuses one is used without it: its graphs have only the annotation of their launch.
    call_back(cupti::kResourceDomain, static_cast<uint32_t>(callback));
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
  if (handle_ == nullptr || library_->cupti().EnableCallback == nullptr) {
    return Failure{cupti::FailureKind::kCuptiCall,
                   "calls of cuProfilerStart cannot be seen: another client of CUPTI has the subscription",
                   "End the other profiler, or use --capture-range=nvtx:NAME"};
  }
  for (const auto& [domain, id] : kWatched) {
    const Result result = call_back(static_cast<uint32_t>(domain), id);
    if (result != Result::kSuccess) return cupti::describe("cuptiEnableCallback", result, library_->text_of(result));
  }
  return std::nullopt;
}

void Subscription::watch_calls(const std::set<std::pair<uint32_t, uint32_t>>& functions) {
  if (handle_ == nullptr || library_->cupti().EnableCallback == nullptr) return;
  for (const auto& [domain, id] : functions) call_back(domain, id);
}

void Subscription::close() {
  if (handle_ != nullptr && handle_ != api().subscriber()) library_->cupti().Unsubscribe(handle_);
  if (handle_ != nullptr && handle_ == api().subscriber()) {
    for (const auto& [domain, id] : called_back_) library_->cupti().EnableCallback(0, handle_, domain, id);
  }
  called_back_.clear();
  handle_ = nullptr;
}

std::optional<Failure> Subscription::enable(const std::vector<ActivityKind>& kinds) {
  for (const ActivityKind kind : kinds) {
    if (is_enabled(kind)) continue;
    if (kind == ActivityKind::kConcurrentKernel && kernels_left_on_ == library_) continue;
    // Objects that are created once often exist before the session, so their records are dumped too.
    const Result result = cupti::is_made_once(kind) ? api().enable_and_dump(kind) : api().enable(kind);
    if (result == Result::kInvalidKind) continue;  // a kind that this older library does not have
    if (result != Result::kSuccess) return cupti::describe("cuptiActivityEnable", result, library_->text_of(result));
    enabled_.push_back(kind);
  }
  leave_out_noisy_calls();
  // Another subscriber has chosen so for all, and the nodes have no records.
  if (is_enabled(ActivityKind::kConcurrentKernel) && api().records_whole_graphs()) record_whole_graphs();
  return std::nullopt;
}

bool Subscription::record_whole_graphs() {
  constexpr ActivityKind kKind = ActivityKind::kGraphTrace;
  if (is_enabled(kKind) || api().enable(kKind) != Result::kSuccess) return false;
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
  api().disable(kind);
}

bool Subscription::has_calls() const { return is_enabled(ActivityKind::kRuntime) && is_enabled(ActivityKind::kDriver); }

bool Subscription::is_enabled(ActivityKind kind) const {
  return std::find(enabled_.begin(), enabled_.end(), kind) != enabled_.end();
}

void Subscription::leave_out_noisy_calls() {
  // Enabling a kind resets its filter, so this runs afterwards.
  constexpr std::pair<ActivityKind, cupti::CallbackDomain> kFiltered[] = {
      {ActivityKind::kRuntime, cupti::CallbackDomain::kRuntimeApi},
      {ActivityKind::kDriver, cupti::CallbackDomain::kDriverApi},
  };
  for (const auto& [kind, domain] : kFiltered) {
    if (!library_->has(Feature::kApiFilters) || !is_enabled(kind)) continue;
    for (const uint32_t id : noisy_calls(domain)) api().leave_out_call(domain, id);
  }
  if (library_->has(Feature::kSyncRecordFilter) && is_enabled(ActivityKind::kSynchronization)) {
    api().leave_out_unfinished_waits();  // polling a busy event would flood the buffers
  }
}

// The ids are found by name, which is reliable in all versions so far.
const std::vector<uint32_t>& Subscription::noisy_calls(cupti::CallbackDomain domain) {
  if (noisy_calls_of_ != library_) noisy_calls_.clear();
  noisy_calls_of_ = library_;
  const auto [found, is_new] = noisy_calls_.try_emplace(domain);
  for (uint32_t id = 1; is_new && id < cupti::kCallbackIds; ++id) {
    const std::string name = library_->callback_name(domain, id);
    if (std::find(std::begin(kNoisyCalls), std::end(kNoisyCalls), name) != std::end(kNoisyCalls)) {
      found->second.push_back(id);
    }
  }
  return found->second;
}

}  // namespace collector::capture
