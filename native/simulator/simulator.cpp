#include "simulator/simulator.h"

#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace collector::simulator {
namespace {

using cupti::ActivityKind;
using cupti::CallbackDomain;
using cupti::Result;

constexpr uint32_t kNoValue = 0xFFFFFFFF;  // CUPTI's "no stream", "no event" in synchronization records
constexpr uint8_t kNoise = 0xA5;           // bytes that mean nothing in the simulated version

std::atomic<Simulator*> current_simulator{nullptr};
std::mutex open_mutex;

int64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

SimConfig with_start(SimConfig config) {
  if (config.start_ns < 0) config.start_ns = realtime_ns();
  return config;
}

uint64_t next_generation() {
  static std::atomic<uint64_t> generations{0};
  return ++generations;
}

// Simulators that were current once; reachable until the process ends.
std::vector<std::unique_ptr<Simulator>>& opened() {
  static auto* all = new std::vector<std::unique_ptr<Simulator>>;
  return *all;
}

int environment_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

constexpr size_t index(ActivityKind kind) { return static_cast<size_t>(kind); }

}  // namespace

Simulator::Simulator(const SimConfig& asked, Release played)
    : config(with_start(asked)),
      release(played),
      driver_version(asked.driver_version != 0 ? asked.driver_version : asked.cuda),
      device_name(asked.device_name != nullptr ? asked.device_name : "Simulated GPU"),
      clock(config.start_ns, config.follow_real_time != 0),
      misuses(config.abort_on_fatal != 0),
      buffers(faults, misuses, config.deliver_from_caller != 0, played.api_version < 27),
      generation_(next_generation()),
      per_thread_buffers_(played.cuda >= 13000),
      boot_ns_(config.start_ns - 3'600'000'000'000) {
  for (uint32_t device = 0; device < static_cast<uint32_t>(config.devices); ++device) create_context(device);
  using cupti::Attribute;
  attributes_[static_cast<size_t>(Attribute::kDeviceBufferPoolLimit)] = 250;
  attributes_[static_cast<size_t>(Attribute::kDeviceBufferPreAllocateValue)] = 3;
  attributes_[static_cast<size_t>(Attribute::kMemAllocationTypeHostPinned)] = played.cuda < 13000 ? 1 : 0;
  attributes_[static_cast<size_t>(Attribute::kPerThreadActivityBuffer)] = played.cuda >= 13000 ? 1 : 0;
  attributes_[0] = 3'200'000;
  prepare_templates();
  buffers.wake_worker = [](void* self) { static_cast<Simulator*>(self)->wake(); };
  buffers.wake_argument = this;
  worker_ = std::thread([this] { work(); });
}

Simulator& Simulator::current() {
  Simulator* simulator = current_simulator.load(std::memory_order_acquire);
  if (simulator != nullptr) return *simulator;
  const std::lock_guard lock(open_mutex);
  simulator = current_simulator.load(std::memory_order_acquire);
  if (simulator != nullptr) return *simulator;
  SimConfig config{};
  config.cuda = environment_number("COLLECTOR_SIMULATED_CUDA", 13000);
  config.devices = environment_number("COLLECTOR_SIMULATED_DEVICES", 1);
  config.start_ns = -1;
  config.api_call_ns = 4000;
  config.launch_latency_ns = 2000;
  config.gap_ns = 500;
  Release release = release_of(config.cuda, 0);
  if (release.cuda == 0) release = release_of(config.cuda = 13000, 0);
  opened().push_back(std::make_unique<Simulator>(config, release));
  current_simulator.store(opened().back().get(), std::memory_order_release);
  return *opened().back();
}

void Simulator::open(const SimConfig& config, Release release) {
  auto simulator = std::make_unique<Simulator>(config, release);
  const std::lock_guard lock(open_mutex);
  Simulator* before = current_simulator.exchange(simulator.get(), std::memory_order_acq_rel);
  if (before != nullptr) before->close();
  opened().push_back(std::move(simulator));
}

void Simulator::close() {
  if (closed_.exchange(true)) return;
  wake();
  if (worker_.joinable()) worker_.join();
  buffers.set_callbacks(nullptr, nullptr);
  subscriber_.store(nullptr);
}

void Simulator::prepare_templates() {
  for (uint32_t kind = 0; kind <= kLastKind; ++kind) strides_[kind] = stride_of(kind, release.cuda);
  std::memset(&kernel_, kNoise, sizeof kernel_);
  std::memset(&memcpy_, kNoise, sizeof memcpy_);
  std::memset(&peer_memcpy_, kNoise, sizeof peer_memcpy_);
  std::memset(&memset_, kNoise, sizeof memset_);
  std::memset(&synchronization_, kNoise, sizeof synchronization_);
  std::memset(&overhead_, kNoise, sizeof overhead_);

  kernel_.kind = static_cast<uint32_t>(ActivityKind::kConcurrentKernel);
  kernel_.cacheConfig = 0;
  kernel_.sharedMemoryConfig = 0;
  kernel_.partitionedGlobalCacheRequested = kernel_.partitionedGlobalCacheExecuted = 0;
  kernel_.localMemoryTotal = 0;
  kernel_.queued = kernel_.submitted = 0;
  kernel_.isSharedMemoryCarveoutRequested = kernel_.sharedMemoryCarveoutRequested = 0;
  kernel_.sharedMemoryExecuted = 0;
  kernel_.shmemLimitConfig = 0;
  kernel_.pAccessPolicyWindow = nullptr;
  kernel_.channelID = 8;
  kernel_.channelType = 1;
  kernel_.clusterSchedulingPolicy = 0;
  kernel_.localMemoryTotal_v2 = 0;
  kernel_.maxPotentialClusterSize = kernel_.maxActiveClusters = 0;

  memcpy_.kind = static_cast<uint32_t>(ActivityKind::kMemcpy);
  memcpy_.channelID = 9;
  memcpy_.channelType = 2;
  peer_memcpy_.kind = static_cast<uint32_t>(ActivityKind::kMemcpy2);
  peer_memcpy_.copyKind = static_cast<uint8_t>(cupti::MemcpyKind::kPtoP);
  peer_memcpy_.channelID = 9;
  peer_memcpy_.channelType = 2;
  memset_.kind = static_cast<uint32_t>(ActivityKind::kMemset);
  memset_.channelID = 8;
  memset_.channelType = 1;
  synchronization_.kind = static_cast<uint32_t>(ActivityKind::kSynchronization);
  overhead_.kind = static_cast<uint32_t>(ActivityKind::kOverhead);
  if (release.cuda >= 12080) {
    memcpy_.copyCount = 1;
    synchronization_.cudaEventSyncId = 0;
    synchronization_.returnValue = 0;
  }
  if (release.cuda >= 12040) overhead_.overheadData = nullptr;
  if (release.cuda >= 13000) kernel_.isDeviceLaunched = memcpy_.isDeviceLaunched = memset_.isDeviceLaunched = 0;
  if (release.cuda >= 13010) kernel_.priority = 0;
  if (release.cuda >= 13030) kernel_.executionModel = 1;
  if (release.cuda >= 13040) {
    kernel_.sourceGraphId = memcpy_.sourceGraphId = memset_.sourceGraphId = 0;
    kernel_.sourceGraphNodeId = memcpy_.sourceGraphNodeId = memset_.sourceGraphNodeId = 0;
  }
}

ThreadState& Simulator::thread() {
  thread_local uint64_t generation = 0;
  thread_local ThreadState* state = nullptr;
  if (generation != generation_) {
    auto fresh = std::make_unique<ThreadState>();
    fresh->system_thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
    fresh->posix_thread_id = static_cast<uint32_t>(pthread_self());
    const std::lock_guard lock(threads_mutex_);
    threads_.push_back(std::move(fresh));
    state = threads_.back().get();
    generation = generation_;
  }
  return *state;
}

std::vector<RecordBuffer*> Simulator::all_buffers() {
  const std::lock_guard lock(threads_mutex_);
  std::vector<RecordBuffer*> all{&shared_buffer_};
  for (const auto& thread : threads_) all.push_back(&thread->buffer);
  return all;
}

Context* Simulator::context(uint32_t id) {
  const std::lock_guard lock(device_mutex_);
  return id >= 1 && id <= contexts_.size() ? contexts_[id - 1].get() : nullptr;
}

Context* Simulator::primary_context(uint32_t device) {
  return device < static_cast<uint32_t>(config.devices) ? context(device + 1) : nullptr;
}

bool Simulator::used(uint32_t device) {
  const std::lock_guard lock(device_mutex_);
  for (const auto& tail : tails_) {
    if (contexts_[tail.first.first - 1]->device == device) return true;
  }
  return false;
}

uint32_t Simulator::create_context(uint32_t device) {
  const std::lock_guard lock(device_mutex_);
  contexts_.push_back(std::make_unique<Context>(Context{static_cast<uint32_t>(contexts_.size() + 1), device}));
  return contexts_.back()->id;
}

// -- API calls ------------------------------------------------------------------------------------------------------

ApiCall Simulator::begin_call(uint32_t runtime_id, uint32_t driver_id) {
  ApiCall call;
  call.correlation_id = next_correlation_.fetch_add(1, std::memory_order_relaxed);
  call.runtime_id = runtime_id;
  call.driver_id = driver_id;
  notify_subscriber(call, false);
  call.start_ns = clock.take(config.api_call_ns);
  call.end_ns = call.start_ns + config.api_call_ns;
  return call;
}

void Simulator::end_call(const ApiCall& call) {
  notify_subscriber(call, true);
  if (enabled(ActivityKind::kRuntime) || enabled(ActivityKind::kDriver)) write_api(call, thread());
}

void Simulator::write_api(const ApiCall& call, ThreadState& thread) {
  const auto wanted = [&](uint32_t id, ActivityKind kind, CallbackDomain domain) {
    return id != 0 && enabled(kind) && !muted_[static_cast<size_t>(domain) - 1][id].load(std::memory_order_relaxed);
  };
  const bool runtime = wanted(call.runtime_id, ActivityKind::kRuntime, CallbackDomain::kRuntimeApi);
  const bool driver = wanted(call.driver_id, ActivityKind::kDriver, CallbackDomain::kDriverApi);
  if (!runtime && !driver) return;
  if (enabled(ActivityKind::kExternalCorrelation)) write_external(call.correlation_id, thread);
  if (faults.strikes(Fault::kLostApiRecord)) return;
  cupti::Api record{};
  record.processId = static_cast<uint32_t>(pid);
  record.threadId = system_thread_ids.load() ? thread.system_thread_id : thread.posix_thread_id;
  record.correlationId = call.correlation_id;
  record.returnValue = call.return_value;
  const int64_t offset = timestamp_offset_ns_.load(std::memory_order_relaxed);
  // The driver call is nested in the runtime's, and so ends, and is written, first.
  const int64_t inset = call.runtime_id != 0 ? (call.end_ns - call.start_ns) / 8 : 0;
  if (driver) {
    record.kind = static_cast<uint32_t>(ActivityKind::kDriver);
    record.cbid = call.driver_id;
    record.start = static_cast<uint64_t>(call.start_ns + inset + offset);
    record.end = static_cast<uint64_t>(call.end_ns - inset + offset);
    write(record.kind, &record, sizeof record, buffer_of(thread));
  }
  if (runtime) {
    record.kind = static_cast<uint32_t>(ActivityKind::kRuntime);
    record.cbid = call.runtime_id;
    record.start = static_cast<uint64_t>(call.start_ns + offset);
    record.end = static_cast<uint64_t>(call.end_ns + offset);
    write(record.kind, &record, sizeof record, buffer_of(thread));
  }
}

void Simulator::write_external(uint32_t correlation_id, ThreadState& thread) {
  for (uint32_t kind = 0; kind < thread.external_ids.size(); ++kind) {
    if (thread.external_ids[kind].empty()) continue;
    cupti::ExternalCorrelation record{};
    record.kind = static_cast<uint32_t>(ActivityKind::kExternalCorrelation);
    record.externalKind = kind;
    record.externalId = thread.external_ids[kind].back();
    record.correlationId = correlation_id;
    if (faults.strikes(Fault::kLateCorrelation)) {
      buffers.append_late(&record, sizeof record);
    } else {
      write(record.kind, &record, sizeof record, buffer_of(thread));
    }
  }
}

void Simulator::notify_subscriber(const ApiCall& call, bool exit) {
  const SubscriberCallback callback = subscriber_.load(std::memory_order_acquire);
  if (callback == nullptr) return;
  struct CallbackData {
    uint32_t site;
    const char* function_name;
    const void* params;
    void* return_value;
    const char* symbol_name;
    void* context;
    uint32_t context_id;
    uint64_t* correlation_data;
    uint32_t correlation_id;
  };
  static_assert(sizeof(CallbackData) == 72);
  thread_local std::array<uint64_t, 3> correlation_data{};
  uint32_t return_value = call.return_value;
  const auto notify = [&](CallbackDomain domain, uint32_t id) {
    const auto row = static_cast<size_t>(domain);
    if (id == 0 || !callbacks_on_[row][id].load(std::memory_order_relaxed)) return;
    CallbackData data{exit ? 1U : 0U,     nullptr, nullptr, &return_value, nullptr, nullptr, 0, &correlation_data[row],
                      call.correlation_id};
    for (const CallbackName& name : kCallbackNames) {
      if (name.domain == domain && name.id == id) data.function_name = name.name;
    }
    callback(subscriber_data_.load(), static_cast<uint32_t>(domain), id, &data);
  };
  if (!exit) notify(CallbackDomain::kRuntimeApi, call.runtime_id);
  notify(CallbackDomain::kDriverApi, call.driver_id);
  if (exit) notify(CallbackDomain::kRuntimeApi, call.runtime_id);
}

uint32_t Simulator::plain_call(uint32_t runtime_id, uint32_t driver_id) {
  const ApiCall call = begin_call(runtime_id, driver_id);
  end_call(call);
  return call.correlation_id;
}

// -- The device -----------------------------------------------------------------------------------------------------

bool Simulator::recorded(const SimActivity& activity) const {
  switch (activity.type) {
    case kSimKernel:
      return enabled(ActivityKind::kConcurrentKernel) || enabled(ActivityKind::kKernel);
    case kSimMemcpy:
      return enabled(ActivityKind::kMemcpy);
    case kSimPeerMemcpy:  // needs both kinds
      return enabled(ActivityKind::kMemcpy) && enabled(ActivityKind::kMemcpy2);
    default:
      return enabled(ActivityKind::kMemset);
  }
}

std::pair<uint32_t, uint32_t> Simulator::callback_ids(const SimActivity& activity) const {
  uint32_t runtime = 0;
  uint32_t driver = 0;
  switch (activity.type) {
    case kSimKernel:
      runtime = activity.launch_type == 1 ? callback_id("cudaLaunchCooperativeKernel_v9000")
                : activity.cluster[0] > 1 ? callback_id("cudaLaunchKernelExC_v11060")
                                          : callback_id("cudaLaunchKernel_v7000");
      driver = activity.cluster[0] > 1 ? callback_id("cuLaunchKernelEx") : callback_id("cuLaunchKernel");
      break;
    case kSimMemcpy:
      runtime = activity.is_async != 0 ? callback_id("cudaMemcpyAsync_v3020") : callback_id("cudaMemcpy_v3020");
      driver = activity.copy_kind == 1   ? callback_id("cuMemcpyHtoDAsync_v2")
               : activity.copy_kind == 2 ? callback_id("cuMemcpyDtoHAsync_v2")
               : activity.copy_kind == 8 ? callback_id("cuMemcpyDtoDAsync_v2")
                                         : callback_id("cuMemcpyAsync");
      break;
    case kSimPeerMemcpy:
      runtime = callback_id("cudaMemcpyPeerAsync_v4000");
      driver = callback_id("cuMemcpyPeerAsync");
      break;
    default:
      runtime = activity.is_async != 0 ? callback_id("cudaMemsetAsync_v3020") : callback_id("cudaMemset_v3020");
      driver = callback_id("cuMemsetD8Async");
  }
  if (activity.graph_id != 0) {
    runtime = callback_id("cudaGraphLaunch_v10000");
    driver = callback_id("cuGraphLaunch");
  }
  if ((activity.launch & kSimRuntimeCall) == 0) runtime = 0;
  if ((activity.launch & kSimDriverCall) == 0) driver = 0;
  return {runtime, driver};
}

// Puts the activity behind what its stream does already.
void Simulator::schedule(SimActivity& activity, int64_t earliest_ns, int64_t duration_ns) {
  int64_t& tail = stream_tail(activity.context_id, activity.stream_id);
  activity.start_ns = std::max(earliest_ns, tail == 0 ? earliest_ns : tail + config.gap_ns);
  activity.end_ns = activity.start_ns + duration_ns;
  tail = activity.end_ns;
}

uint32_t Simulator::execute(const SimActivity& asked, int64_t duration_ns, uint64_t count) {
  SimActivity activity = asked;
  if (activity.context_id == 0) activity.context_id = activity.device_id + 1;
  const Context* owner = context(activity.context_id);
  if (owner == nullptr || owner->device != activity.device_id) return 0;
  if (activity.name != nullptr) activity.name = names.address(activity.name);
  if (latency_timestamps.load()) activity.launch |= kSimLatencyStamps;
  const auto [runtime_id, driver_id] = callback_ids(activity);
  RecordBuffer& buffer = buffer_of(thread());
  uint32_t first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ApiCall call = begin_call(runtime_id, driver_id);
    if (i == 0) first = call.correlation_id;
    activity.correlation_id = call.correlation_id;
    launches.fetch_add(1, std::memory_order_relaxed);
    const bool write = recorded(activity);
    {
      const std::lock_guard lock(device_mutex_);
      schedule(activity, call.end_ns + config.launch_latency_ns, duration_ns);
      // One by one a kernel takes its time; in bulk its record is written as soon as its call's is.
      if (write && count == 1) pending_.push({activity, &buffer, sequence_++});
    }
    if (activity.is_async == 0 && (activity.type == kSimMemcpy || activity.type == kSimMemset)) {
      clock.advance_to(activity.end_ns);
      call.end_ns = std::max(call.end_ns, activity.end_ns);
    }
    end_call(call);
    if (write && count > 1) write_activity(activity, buffer);
  }
  if (count > 1) clock.advance_to(activity.end_ns);
  return first;
}

void Simulator::replay(const SimActivity* activities, size_t count) {
  ThreadState& here = thread();
  RecordBuffer& buffer = buffer_of(here);
  // New ids come after every given one.
  uint32_t last_given = 0;
  for (size_t i = 0; i < count; ++i) last_given = std::max(last_given, activities[i].correlation_id);
  uint32_t next = next_correlation_.load();
  while (next <= last_given && !next_correlation_.compare_exchange_weak(next, last_given + 1)) {
  }
  for (size_t i = 0; i < count; ++i) {
    SimActivity activity = activities[i];
    if (activity.context_id == 0) activity.context_id = activity.device_id + 1;
    if (activity.name != nullptr) activity.name = names.address(activity.name);
    if (activity.correlation_id == 0) {
      activity.correlation_id = next_correlation_.fetch_add(1, std::memory_order_relaxed);
    }
    if (activity.launch != kSimNoCall) {
      launches.fetch_add(1, std::memory_order_relaxed);
      const auto [runtime_id, driver_id] = callback_ids(activity);
      ApiCall call;
      call.correlation_id = activity.correlation_id;
      call.runtime_id = runtime_id;
      call.driver_id = driver_id;
      call.start_ns = activity.launch_start_ns;
      call.end_ns = activity.launch_end_ns;
      if (call.start_ns == 0 && call.end_ns == 0) {
        call.end_ns = std::max<int64_t>(activity.start_ns - config.launch_latency_ns, 1);
        call.start_ns = std::max<int64_t>(call.end_ns - config.api_call_ns, 1);
      }
      write_api(call, here);
      clock.advance_to(call.end_ns);
    }
    if (recorded(activity)) write_activity(activity, buffer);
    clock.advance_to(std::max(activity.start_ns, activity.end_ns));
  }
}

uint32_t Simulator::launch_graph(const SimActivity* nodes, const int64_t* durations_ns, size_t count,
                                 uint32_t graph_id) {
  SimActivity launched{};
  launched.graph_id = graph_id;
  launched.launch = count > 0 ? nodes[0].launch : kSimNoCall;
  const auto [runtime_id, driver_id] = callback_ids(launched);
  const ApiCall call = begin_call(runtime_id, driver_id);
  launches.fetch_add(1, std::memory_order_relaxed);
  graph_launches.fetch_add(1, std::memory_order_relaxed);
  RecordBuffer& buffer = buffer_of(thread());
  for (size_t i = 0; i < count; ++i) {
    SimActivity node = nodes[i];
    if (node.context_id == 0) node.context_id = node.device_id + 1;
    if (node.name != nullptr) node.name = names.address(node.name);
    node.graph_id = graph_id;
    if (latency_timestamps.load()) node.launch |= kSimLatencyStamps;
    if (node.graph_node_id == 0) node.graph_node_id = (static_cast<uint64_t>(graph_id) << 32) + i + 1;
    node.correlation_id = call.correlation_id;
    const std::lock_guard lock(device_mutex_);
    schedule(node, call.end_ns + config.launch_latency_ns, durations_ns[i]);
    if (recorded(node)) pending_.push({node, &buffer, sequence_++});
  }
  end_call(call);
  return call.correlation_id;
}

void Simulator::write_synchronization(cupti::SynchronizationType type, const ApiCall& call, uint32_t context_id,
                                      uint32_t stream_id, uint32_t event_id) {
  if (!enabled(ActivityKind::kSynchronization)) return;
  cupti::Synchronization record = synchronization_;
  record.type = static_cast<uint32_t>(type);
  record.start = static_cast<uint64_t>(call.start_ns);
  record.end = static_cast<uint64_t>(call.end_ns);
  record.correlationId = call.correlation_id;
  record.contextId = context_id;
  record.streamId = stream_id;
  record.cudaEventId = event_id;
  if (release.cuda >= 12080 && event_id != kNoValue) record.cudaEventSyncId = event_id;
  write(record.kind, &record, strides_[record.kind], buffer_of(thread()));
}

uint32_t Simulator::synchronize(uint32_t device, int64_t stream, uint32_t launch) {
  const bool whole = stream < 0;
  const uint32_t runtime_id =
      whole ? callback_id("cudaDeviceSynchronize_v3020") : callback_id("cudaStreamSynchronize_v3020");
  const uint32_t driver_id = whole ? callback_id("cuCtxSynchronize") : callback_id("cuStreamSynchronize");
  ApiCall call =
      begin_call((launch & kSimRuntimeCall) != 0 ? runtime_id : 0, (launch & kSimDriverCall) != 0 ? driver_id : 0);
  {
    const std::lock_guard lock(device_mutex_);
    for (const auto& [key, tail] : tails_) {
      const auto& [context_id, stream_id] = key;
      if (contexts_[context_id - 1]->device != device) continue;
      if (whole || stream_id == static_cast<uint32_t>(stream)) call.end_ns = std::max(call.end_ns, tail);
    }
  }
  clock.advance_to(call.end_ns);
  if (whole) {
    write_synchronization(cupti::SynchronizationType::kContextSynchronize, call, device + 1, kNoValue, kNoValue);
  } else {
    write_synchronization(cupti::SynchronizationType::kStreamSynchronize, call, device + 1,
                          static_cast<uint32_t>(stream), kNoValue);
  }
  end_call(call);
  wake();
  return call.correlation_id;
}

bool Simulator::query(uint32_t device, uint32_t stream) {
  const ApiCall call = begin_call(callback_id("cudaStreamQuery_v3020"), callback_id("cuStreamQuery"));
  bool done = false;
  {
    const std::lock_guard lock(device_mutex_);
    done = stream_tail(device + 1, stream) <= call.start_ns;
  }
  if (done || all_sync_records.load()) {
    write_synchronization(cupti::SynchronizationType::kStreamSynchronize, call, device + 1, stream, kNoValue);
  }
  end_call(call);
  return done;
}

uint32_t Simulator::record_event(uint32_t device, uint32_t stream) {
  plain_call(callback_id("cudaEventRecord_v3020"), callback_id("cuEventRecord"));
  const std::lock_guard lock(device_mutex_);
  events_.emplace_back(device + 1, std::max(clock.now(), stream_tail(device + 1, stream)));
  return static_cast<uint32_t>(events_.size());
}

bool Simulator::wait_event(uint32_t device, uint32_t stream, uint32_t event) {
  {
    const std::lock_guard lock(device_mutex_);
    if (event == 0 || event > events_.size()) return false;
    int64_t& tail = stream_tail(device + 1, stream);
    tail = std::max(tail, events_[event - 1].second);
  }
  const ApiCall call = begin_call(callback_id("cudaStreamWaitEvent_v3020"), callback_id("cuStreamWaitEvent"));
  write_synchronization(cupti::SynchronizationType::kStreamWaitEvent, call, device + 1, stream, event);
  end_call(call);
  return true;
}

bool Simulator::synchronize_event(uint32_t event) {
  std::pair<uint32_t, int64_t> recorded_event;
  {
    const std::lock_guard lock(device_mutex_);
    if (event == 0 || event > events_.size()) return false;
    recorded_event = events_[event - 1];
  }
  ApiCall call = begin_call(callback_id("cudaEventSynchronize_v3020"), callback_id("cuEventSynchronize"));
  call.end_ns = std::max(call.end_ns, recorded_event.second);
  clock.advance_to(call.end_ns);
  write_synchronization(cupti::SynchronizationType::kEventSynchronize, call, recorded_event.first, kNoValue, event);
  end_call(call);
  wake();
  return true;
}

void Simulator::overhead(uint32_t overhead_kind, int64_t duration_ns) {
  constexpr uint32_t kCommandBufferFull = 393216;
  const int64_t start = clock.take(duration_ns);
  if (!enabled(ActivityKind::kOverhead)) return;
  ThreadState& here = thread();
  cupti::Overhead record = overhead_;
  record.overheadKind = overhead_kind;
  record.objectKind = static_cast<uint32_t>(cupti::ObjectKind::kThread);
  record.objectDeviceOrProcess = static_cast<uint32_t>(pid);
  record.objectContextOrThread = system_thread_ids.load() ? here.system_thread_id : here.posix_thread_id;
  record.start = static_cast<uint64_t>(start);
  record.end = static_cast<uint64_t>(start + duration_ns);
  if (release.cuda >= 12030) record.correlationId = next_correlation_.load() - 1;
  // The client owns this memory and has to free it.
  if (release.cuda >= 12040 && overhead_kind == kCommandBufferFull) record.overheadData = std::calloc(1, 12);
  write(record.kind, &record, strides_[record.kind], buffer_of(here));
}

// -- Records --------------------------------------------------------------------------------------------------------

// What the armed faults put before an activity's record. False: they take the record itself.
bool Simulator::precede(RecordBuffer& buffer) {
  if (faults.strikes(Fault::kDroppedRecord)) {
    buffers.drop();
    return false;
  }
  if (faults.strikes(Fault::kLostActivityRecord)) return false;
  int64_t value = 0;
  if (faults.strikes(Fault::kUnknownKind)) {
    std::array<uint32_t, kFutureKindBytes / 4> future{};
    future.fill(0x5A5A5A5A);
    future[0] = kFutureKind;
    buffers.append(buffer, future.data(), kFutureKindBytes);
  }
  if (faults.strikes(Fault::kInvalidKind, &value)) {
    const std::array<uint32_t, 8> invalid{static_cast<uint32_t>(value)};
    buffers.append(buffer, invalid.data(), sizeof invalid);
  }
  return true;
}

// What the armed faults do to an activity's record.
void Simulator::spoil(SimActivity& activity) {
  int64_t value = 0;
  if (faults.strikes(Fault::kShiftedTimestamps, &value)) {
    activity.start_ns += value;
    activity.end_ns += value;
  }
  if (faults.strikes(Fault::kReversedTimestamps)) std::swap(activity.start_ns, activity.end_ns);
  if (faults.strikes(Fault::kZeroEnd)) activity.end_ns = 0;
  const uint64_t pool = attributes_[static_cast<size_t>(cupti::Attribute::kDeviceBufferPoolLimit)].load();
  const bool dry = faults.strikes(Fault::kPoolExhausted, &value) &&
                   device_records_.fetch_add(1, std::memory_order_relaxed) >= pool * static_cast<uint64_t>(value);
  if (dry || faults.strikes(Fault::kZeroTimestamps)) activity.start_ns = activity.end_ns = 0;
  if (faults.strikes(Fault::kNullName)) activity.name = nullptr;
}

void Simulator::write_activity(SimActivity activity, RecordBuffer& buffer) {
  if (faults.any() && !precede(buffer)) return;
  if (activity.start_ns != 0 || activity.end_ns != 0) {
    int64_t offset = timestamp_offset_ns_.load(std::memory_order_relaxed);
    if (wrong_clock_records_.load(std::memory_order_relaxed) > 0 && wrong_clock_records_.fetch_sub(1) > 0) {
      offset = -boot_ns_;
    }
    activity.start_ns += offset;
    if (activity.end_ns != 0) activity.end_ns += offset;
  }
  if (faults.any()) spoil(activity);
  const auto start = static_cast<uint64_t>(activity.start_ns);
  const auto end = static_cast<uint64_t>(activity.end_ns);
  switch (activity.type) {
    case kSimKernel: {
      cupti::Kernel record = kernel_;
      if (!enabled(ActivityKind::kConcurrentKernel) && enabled(ActivityKind::kKernel)) {
        record.kind = static_cast<uint32_t>(ActivityKind::kKernel);
      }
      record.start = start;
      record.end = end;
      record.completed = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.gridX = activity.grid[0];
      record.gridY = activity.grid[1];
      record.gridZ = activity.grid[2];
      record.blockX = activity.block[0];
      record.blockY = activity.block[1];
      record.blockZ = activity.block[2];
      record.clusterX = activity.cluster[0];
      record.clusterY = activity.cluster[1];
      record.clusterZ = activity.cluster[2];
      record.registersPerThread = static_cast<uint16_t>(activity.registers_per_thread);
      record.staticSharedMemory = activity.static_shared_bytes;
      record.dynamicSharedMemory = activity.dynamic_shared_bytes;
      record.localMemoryPerThread = activity.local_bytes_per_thread;
      record.correlationId = activity.correlation_id;
      record.gridId = next_grid_id_.fetch_add(1, std::memory_order_relaxed);
      record.name = activity.name;
      record.launchType = static_cast<uint8_t>(activity.launch_type);
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      if ((activity.launch & kSimLatencyStamps) != 0) {
        record.queued = start - static_cast<uint64_t>(config.launch_latency_ns);
        record.submitted = start - static_cast<uint64_t>(config.launch_latency_ns / 2);
      }
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
    case kSimMemcpy: {
      cupti::Memcpy record = memcpy_;
      record.copyKind = static_cast<uint8_t>(activity.copy_kind);
      record.srcKind = static_cast<uint8_t>(activity.src_kind);
      record.dstKind = static_cast<uint8_t>(activity.dst_kind);
      record.flags = static_cast<uint8_t>(activity.is_async);
      record.bytes = activity.num_bytes;
      record.start = start;
      record.end = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.correlationId = activity.correlation_id;
      record.runtimeCorrelationId = activity.correlation_id;
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
    case kSimPeerMemcpy: {
      cupti::MemcpyPtoP record = peer_memcpy_;
      record.srcKind = static_cast<uint8_t>(activity.src_kind);
      record.dstKind = static_cast<uint8_t>(activity.dst_kind);
      record.flags = static_cast<uint8_t>(activity.is_async);
      record.bytes = activity.num_bytes;
      record.start = start;
      record.end = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.srcDeviceId = activity.src_device_id;
      record.srcContextId = activity.src_device_id + 1;
      record.dstDeviceId = activity.dst_device_id;
      record.dstContextId = activity.dst_device_id + 1;
      record.correlationId = activity.correlation_id;
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
    default: {
      cupti::Memset record = memset_;
      record.value = activity.value;
      record.bytes = activity.num_bytes;
      record.start = start;
      record.end = end;
      record.deviceId = activity.device_id;
      record.contextId = activity.context_id;
      record.streamId = activity.stream_id;
      record.correlationId = activity.correlation_id;
      record.flags = static_cast<uint16_t>(activity.is_async);
      record.memoryKind = static_cast<uint16_t>(activity.memory_kind);
      record.graphNodeId = activity.graph_node_id;
      record.graphId = activity.graph_id;
      return write(record.kind, &record, strides_[record.kind], buffer);
    }
  }
}

void Simulator::write(uint32_t kind, const void* record, size_t bytes, RecordBuffer& buffer) {
  if (buffers.append(buffer, record, bytes)) records_by_kind[kind].fetch_add(1, std::memory_order_relaxed);
}

// -- Completion -----------------------------------------------------------------------------------------------------

// Writes the records of all work that is over; forced: of the rest too, as unfinished.
void Simulator::complete_due(bool forced) {
  const std::lock_guard completing(completing_);
  std::vector<Work> due;
  {
    const std::lock_guard lock(device_mutex_);
    const int64_t now = clock.now();
    while (!pending_.empty() && (forced || pending_.top().activity.end_ns <= now)) {
      due.push_back(pending_.top());
      pending_.pop();
      SimActivity& activity = due.back().activity;
      if (activity.end_ns > now) activity.end_ns = 0;
      if (activity.start_ns > now) activity.start_ns = 0;
    }
  }
  for (const Work& work : due) write_activity(work.activity, *work.buffer);
}

void Simulator::wake() {
  {
    const std::lock_guard lock(worker_mutex_);
    worker_due_ = true;
  }
  worker_wakes_.notify_one();
}

void Simulator::work() {
  using Steady = std::chrono::steady_clock;
  auto next_flush = Steady::now();
  while (alive()) {
    {
      std::unique_lock lock(worker_mutex_);
      worker_wakes_.wait_for(lock, std::chrono::milliseconds(5), [this] { return worker_due_; });
      worker_due_ = false;
    }
    if (!alive()) return;
    complete_due(false);
    buffers.deliver_slow();
    const uint32_t period = flush_period_ms_.load();
    if (period != 0 && Steady::now() >= next_flush) {
      next_flush = Steady::now() + std::chrono::milliseconds(period);
      buffers.flush(all_buffers(), false);
    }
  }
}

bool Simulator::wait_until_idle(int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!buffers.idle()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace collector::simulator
