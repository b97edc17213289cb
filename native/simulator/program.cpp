// The simulated program: its API calls, and the work that they put on the devices' streams.
#include <algorithm>
#include <cstdlib>

#include "simulator/simulator.h"

namespace collector::simulator {
namespace {

using cupti::ActivityKind;
using cupti::CallbackDomain;

constexpr uint32_t kNoValue = 0xFFFFFFFF;  // CUPTI's "no stream", "no event" in synchronization records
constexpr uint32_t kLaunchFailed = 719;

}  // namespace

// -- API calls ------------------------------------------------------------------------------------------------------

ApiCall Simulator::begin_call(uint32_t runtime_id, uint32_t driver_id, const void* params) {
  ApiCall call;
  call.params = params;
  call.correlation_id = next_correlation_.fetch_add(1, std::memory_order_relaxed);
  call.runtime_id = runtime_id;
  call.driver_id = driver_id;
  call.return_value = context_error.load(std::memory_order_relaxed);
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
    return id != 0 && enabled(kind) && !muted_[cupti::index_of(domain)][id].load(std::memory_order_relaxed);
  };
  const bool runtime = wanted(call.runtime_id, ActivityKind::kRuntime, CallbackDomain::kRuntimeApi);
  const bool driver = wanted(call.driver_id, ActivityKind::kDriver, CallbackDomain::kDriverApi);
  if (!runtime && !driver) return;
  if (enabled(ActivityKind::kExternalCorrelation)) write_external(call.correlation_id, thread);
  if (faults.strikes(Fault::kLostApiRecord)) return;
  store::ApiCallRow row{};
  row.process_id = static_cast<uint32_t>(pid);
  row.thread_id = system_thread_ids.load() ? thread.system_thread_id : thread.posix_thread_id;
  row.correlation_id = call.correlation_id;
  row.return_value = call.return_value;
  if (int64_t code = 0; faults.strikes(Fault::kFailedCall, &code)) row.return_value = static_cast<uint32_t>(code);
  const auto write_call = [&](ActivityKind kind, uint32_t id, int64_t start_ns, int64_t end_ns) {
    row.callback_id = id;
    row.start_ns = start_ns;
    row.end_ns = end_ns;
    auto record = record_of<cupti::Api>(row);
    record.kind = static_cast<uint32_t>(kind);
    write(record, buffer_of(thread));
  };
  // The driver call is nested in the runtime call; it ends first, and its record is written first.
  const int64_t inset = call.runtime_id != 0 ? (call.end_ns - call.start_ns) / 8 : 0;
  if (driver) {
    write_call(ActivityKind::kDriver, call.driver_id, call.start_ns + inset, call.end_ns - inset);
  }
  if (runtime) {
    write_call(ActivityKind::kRuntime, call.runtime_id, call.start_ns, call.end_ns);
  }
}

void Simulator::write_external(uint32_t correlation_id, ThreadState& thread) {
  for (uint32_t kind = 0; kind < thread.external_ids.size(); ++kind) {
    if (thread.external_ids[kind].empty()) continue;
    store::ExternalCorrelationRow row{};
    row.external_kind = static_cast<uint8_t>(kind);
    row.external_id = thread.external_ids[kind].back();
    row.correlation_id = correlation_id;
    const auto record = record_of<cupti::ExternalCorrelation>(row);
    if (faults.strikes(Fault::kLateCorrelation)) {
      buffers.append_late(&record, sizeof record);
    } else {
      write(record, buffer_of(thread));
    }
  }
}

void Simulator::notify_subscriber(const ApiCall& call, bool exit) const {
  if (!subscribers.any()) return;
  thread_local std::array<uint64_t, 3> correlation_data{};
  uint32_t return_value = call.return_value;
  const auto notify = [&](CallbackDomain domain, uint32_t id) {
    const auto row = static_cast<uint32_t>(domain);
    if (id == 0) return;
    subscribers.notify(row, id, [&](SubscriberCallback callback, void* userdata) {
      cupti::ApiCallData data{};
      data.callbackSite = exit ? cupti::kCallReturned : cupti::kCallEntered;
      data.functionParams = call.params;
      data.functionReturnValue = &return_value;
      data.correlationData = &correlation_data[row];
      data.correlationId = call.correlation_id;
      for (const CallbackName& name : kCallbackNames) {
        if (name.domain == domain && name.id == id) data.functionName = name.name;
      }
      callback(userdata, row, id, &data);
    });
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
    case kSimPeerMemcpy:  // requires both kinds
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
                : activity.cluster_x > 1  ? callback_id("cudaLaunchKernelExC_v11060")
                                          : callback_id("cudaLaunchKernel_v7000");
      driver = activity.cluster_x > 1 ? callback_id("cuLaunchKernelEx") : callback_id("cuLaunchKernel");
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

// Schedules the activity after the work that its stream already has.
void Simulator::schedule(SimActivity& activity, int64_t earliest_ns, int64_t duration_ns) {
  int64_t& tail = stream_tail(activity.context_id, activity.stream_id);
  activity.start_ns = std::max(earliest_ns, tail == 0 ? earliest_ns : tail + config.gap_ns);
  activity.end_ns = activity.start_ns + duration_ns;
  tail = activity.end_ns;
}

void Simulator::enqueue(SimActivity activity, int64_t earliest_ns, int64_t duration_ns, RecordBuffer& buffer) {
  use_stream(activity.context_id, activity.stream_id);
  const threads::MutexLock lock(device_mutex_);
  schedule(activity, earliest_ns, duration_ns);
  if (recorded(activity)) await(activity, buffer);
}

uint32_t Simulator::execute(const SimActivity& asked, int64_t duration_ns, uint64_t count) {
  SimActivity activity = asked;
  if (activity.context_id == 0) activity.context_id = activity.device_id + 1;
  const Context* owner = context(activity.context_id);
  if (owner == nullptr || owner->device != activity.device_id) return 0;
  use_stream(activity.context_id, activity.stream_id);
  if (activity.name != nullptr) activity.name = names.address(activity.name);
  if (latency_timestamps.load()) activity.launch |= kSimLatencyStamps;
  const auto [runtime_id, driver_id] = callback_ids(activity);
  RecordBuffer& buffer = buffer_of(thread());
  const bool is_captured = thread().captured != nullptr;
  const bool is_staged = activity.type == kSimPeerMemcpy && (activity.launch & kSimNoPeerAccess) != 0;
  uint32_t first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ApiCall call = begin_call(runtime_id, driver_id);
    if (i == 0) first = call.correlation_id;
    if (call.return_value != 0) {
      end_call(call);
      continue;
    }
    if (is_captured) {
      capture(activity, duration_ns);
      end_call(call);
      continue;
    }
    activity.correlation_id = call.correlation_id;
    launches.fetch_add(1, std::memory_order_relaxed);
    if (activity.type == kSimMemcpy && activity.copy_kind == static_cast<uint32_t>(cupti::MemcpyKind::kDtoD) &&
        enabled(ActivityKind::kMemcpy2)) {
      has_copied_beside_peer_copies_.store(true, std::memory_order_relaxed);
    }
    if (is_staged) {
      // Through the host: one copy on each device.
      SimActivity half = activity;
      half.type = kSimMemcpy;
      half.device_id = activity.src_device_id;
      half.context_id = half.device_id + 1;
      half.copy_kind = static_cast<uint32_t>(cupti::MemcpyKind::kDtoH);
      half.dst_kind = static_cast<uint32_t>(cupti::MemoryKind::kPinned);
      enqueue(half, call.end_ns + config.launch_latency_ns, duration_ns / 2, buffer);
      half.device_id = activity.dst_device_id;
      half.context_id = half.device_id + 1;
      half.copy_kind = static_cast<uint32_t>(cupti::MemcpyKind::kHtoD);
      half.src_kind = half.dst_kind;
      half.dst_kind = activity.dst_kind;
      enqueue(half, call.end_ns + config.launch_latency_ns + duration_ns / 2, duration_ns / 2, buffer);
      end_call(call);
      continue;
    }
    const bool write = recorded(activity);
    {
      const threads::MutexLock lock(device_mutex_);
      schedule(activity, call.end_ns + config.launch_latency_ns, duration_ns);
      // A single activity is recorded when its time is over; of several, each is recorded right after its call.
      if (write && count == 1) await(activity, buffer);
    }
    if (activity.is_async == 0 && (activity.type == kSimMemcpy || activity.type == kSimMemset)) {
      clock.advance_to(activity.end_ns);
      call.end_ns = std::max(call.end_ns, activity.end_ns);
    }
    end_call(call);
    if (write && count > 1) write_activity(activity, buffer);
    int64_t code = 0;
    if (activity.type == kSimKernel && faults.strikes(Fault::kFailedKernel, &code)) fail(static_cast<uint32_t>(code));
  }
  if (count > 1 && !is_captured && !is_staged) clock.advance_to(activity.end_ns);
  return first;
}

void Simulator::replay(const SimActivity* activities, size_t count) {
  ThreadState& here = thread();
  RecordBuffer& buffer = buffer_of(here);
  // New ids follow after the highest given id.
  uint32_t last_given = 0;
  for (size_t i = 0; i < count; ++i) last_given = std::max(last_given, activities[i].correlation_id);
  uint32_t next = next_correlation_.load();
  while (next <= last_given && !next_correlation_.compare_exchange_weak(next, last_given + 1)) {
  }
  for (size_t i = 0; i < count; ++i) {
    SimActivity activity = activities[i];
    if (activity.context_id == 0) activity.context_id = activity.device_id + 1;
    if (context(activity.context_id) != nullptr) use_stream(activity.context_id, activity.stream_id);
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

// With CUPTI before 13.5 where MEMCPY2 was enabled: see docs/cupti.md.
bool Simulator::fails(uint32_t graph_id, const ExecutableGraph* executable) {
  const threads::MutexLock lock(device_mutex_);
  const bool is_first = launched_graphs_.emplace(executable != nullptr, graph_id).second;
  return is_first && has_peer_copies_of_earlier_session_.load() && enabled(ActivityKind::kConcurrentKernel);
}

uint32_t Simulator::launch_graph(const SimActivity* nodes, const int64_t* durations_ns, size_t count, uint32_t graph_id,
                                 const ExecutableGraph* executable) {
  SimActivity launched{};
  launched.graph_id = graph_id;
  launched.launch = count > 0 ? nodes[0].launch : kSimNoCall;
  const auto [runtime_id, driver_id] = callback_ids(launched);
  const ApiCall call = begin_call(runtime_id, driver_id);
  launches.fetch_add(1, std::memory_order_relaxed);
  graph_launches.fetch_add(1, std::memory_order_relaxed);
  const bool is_failing = call.return_value == 0 && fails(graph_id, executable);
  if (is_failing) {
    misuses.count(Misuse::kPeerCopiesBeforeGraph);
    fail(kLaunchFailed);  // which the program learns from its next call
  }
  if (is_failing || call.return_value != 0) {
    end_call(call);
    return call.correlation_id;
  }
  RecordBuffer& buffer = buffer_of(thread());
  // Whole graphs are recorded instead of their nodes, also of graphs that were instantiated while they were; of a graph
  // that CUPTI does not know, nothing is.
  const bool records_whole = records_whole_graphs();
  const bool records_nodes = !records_whole && (executable == nullptr || !executable->is_whole);
  std::vector<SimActivity> ran;
  for (size_t i = 0; i < count; ++i) {
    SimActivity node = nodes[i];
    if (node.context_id == 0) node.context_id = node.device_id + 1;
    use_stream(node.context_id, node.stream_id);
    if (node.name != nullptr) node.name = names.address(node.name);
    node.graph_id = graph_id;
    if (latency_timestamps.load()) node.launch |= kSimLatencyStamps;
    if (node.graph_node_id == 0) node.graph_node_id = (static_cast<uint64_t>(graph_id) << 32) + i + 1;
    node.correlation_id = call.correlation_id;
    if (faults.strikes(Fault::kWrongGraphCorrelation)) node.correlation_id -= 1;
    const threads::MutexLock lock(device_mutex_);
    schedule(node, call.end_ns + config.launch_latency_ns, durations_ns[i]);
    if (records_nodes && recorded(node)) await(node, buffer);
    if (records_whole) ran.push_back(node);
  }
  end_call(call);
  if (executable != nullptr && executable->is_known && !ran.empty() && enabled(ActivityKind::kGraphTrace)) {
    write_graph_trace(graph_id, call.correlation_id, ran);
  }
  return call.correlation_id;
}

void Simulator::write_synchronization(cupti::SynchronizationType type, const ApiCall& call, uint32_t context_id,
                                      uint32_t stream_id, uint32_t event_id, uint64_t sync_id) {
  if (!enabled(ActivityKind::kSynchronization)) return;
  store::SynchronizationRow row{};
  row.sync_type = static_cast<uint8_t>(type);
  row.start_ns = call.start_ns;
  row.end_ns = call.end_ns;
  row.correlation_id = call.correlation_id;
  row.context_id = context_id;
  row.stream_id = stream_id;
  row.event_id = event_id;
  row.event_sync_id = sync_id;
  write(record_of<cupti::Synchronization>(row), buffer_of(thread()));
}

uint32_t Simulator::synchronize(uint32_t device, int64_t stream, uint32_t launch) {
  const bool whole = stream < 0;
  const uint32_t runtime_id =
      whole ? callback_id("cudaDeviceSynchronize_v3020") : callback_id("cudaStreamSynchronize_v3020");
  const uint32_t driver_id = whole ? callback_id("cuCtxSynchronize") : callback_id("cuStreamSynchronize");
  ApiCall call =
      begin_call((launch & kSimRuntimeCall) != 0 ? runtime_id : 0, (launch & kSimDriverCall) != 0 ? driver_id : 0);
  if (call.return_value == 0) {
    const threads::MutexLock lock(device_mutex_);
    for (const auto& [key, tail] : tails_) {
      const auto& [context_id, stream_id] = key;
      if (contexts_[context_id - 1]->device != device) continue;
      if (whole || stream_id == static_cast<uint32_t>(stream)) call.end_ns = std::max(call.end_ns, tail);
    }
  }
  clock.advance_to(call.end_ns);
  memory.trim(device);
  // CUPTI 13.0.48 does not record device-wide waits.
  if (whole && release.api_version != 130000) {
    write_synchronization(cupti::SynchronizationType::kContextSynchronize, call, device + 1, kNoValue, kNoValue, 0);
  } else if (!whole) {
    write_synchronization(cupti::SynchronizationType::kStreamSynchronize, call, device + 1,
                          static_cast<uint32_t>(stream), kNoValue, 0);
  }
  end_call(call);
  wake();
  return call.correlation_id;
}

bool Simulator::query(uint32_t device, uint32_t stream) {
  use_stream(device + 1, stream);
  constexpr uint32_t kNotReady = 600;
  ApiCall call = begin_call(callback_id("cudaStreamQuery_v3020"), callback_id("cuStreamQuery"));
  bool done = false;
  {
    const threads::MutexLock lock(device_mutex_);
    done = stream_tail(device + 1, stream) <= call.start_ns;
  }
  if (!done) call.return_value = kNotReady;
  if (done || all_sync_records.load()) {
    write_synchronization(cupti::SynchronizationType::kStreamSynchronize, call, device + 1, stream, kNoValue, 0);
  }
  end_call(call);
  return done;
}

uint32_t Simulator::record_event(uint32_t device, uint32_t stream, uint32_t event) {
  use_stream(device + 1, stream);
  store::CudaEventRow row{};
  row.correlation_id = plain_call(callback_id("cudaEventRecord_v3020"), callback_id("cuEventRecord"));
  row.device_id = device;
  row.context_id = device + 1;
  row.stream_id = stream;
  {
    const threads::MutexLock lock(device_mutex_);
    if (event > events_.size()) return 0;
    if (event == 0) {
      events_.emplace_back();
      event = static_cast<uint32_t>(events_.size());
    }
    const int64_t recorded_ns = std::max(clock.now(), stream_tail(device + 1, stream));
    events_[event - 1] = {device + 1, recorded_ns, ++last_sync_id_};
    row.event_id = event;
    row.event_sync_id = last_sync_id_;
  }
  if (enabled(ActivityKind::kCudaEvent) && enabled(ActivityKind::kSynchronization)) {
    write(record_of<cupti::CudaEvent>(row), buffer_of(thread()));
  }
  return row.event_id;
}

bool Simulator::wait_event(uint32_t device, uint32_t stream, uint32_t event) {
  use_stream(device + 1, stream);
  Event waited{};
  {
    const threads::MutexLock lock(device_mutex_);
    if (event == 0 || event > events_.size()) return false;
    waited = events_[event - 1];
    int64_t& tail = stream_tail(device + 1, stream);
    tail = std::max(tail, waited.recorded_ns);
  }
  const ApiCall call = begin_call(callback_id("cudaStreamWaitEvent_v3020"), callback_id("cuStreamWaitEvent"));
  write_synchronization(cupti::SynchronizationType::kStreamWaitEvent, call, device + 1, stream, event, waited.sync_id);
  end_call(call);
  return true;
}

bool Simulator::synchronize_event(uint32_t event) {
  Event waited{};
  {
    const threads::MutexLock lock(device_mutex_);
    if (event == 0 || event > events_.size()) return false;
    waited = events_[event - 1];
  }
  ApiCall call = begin_call(callback_id("cudaEventSynchronize_v3020"), callback_id("cuEventSynchronize"));
  call.end_ns = std::max(call.end_ns, waited.recorded_ns);
  clock.advance_to(call.end_ns);
  write_synchronization(cupti::SynchronizationType::kEventSynchronize, call, waited.context_id, kNoValue, event,
                        waited.sync_id);
  end_call(call);
  wake();
  return true;
}

void Simulator::overhead(uint32_t overhead_kind, int64_t duration_ns) {
  constexpr uint32_t kCommandBufferFull = 393216;
  const int64_t start = clock.take(duration_ns);
  if (!enabled(ActivityKind::kOverhead)) return;
  ThreadState& here = thread();
  store::OverheadRow row{};
  row.overhead_kind = overhead_kind;
  row.object_kind = static_cast<uint8_t>(cupti::ObjectKind::kThread);
  row.process_id = static_cast<uint32_t>(pid);
  row.thread_id = system_thread_ids.load() ? here.system_thread_id : here.posix_thread_id;
  row.start_ns = start;
  row.end_ns = start + duration_ns;
  row.correlation_id = next_correlation_.load() - 1;
  auto record = record_of<cupti::Overhead>(row);
  // The client owns this memory and must free it.
  if (release.cuda >= 12040 && overhead_kind == kCommandBufferFull) record.overheadData = std::calloc(1, 12);
  write(record, buffer_of(here));
}

void Simulator::overheads_of_flush() {
  constexpr int64_t kDuration = 60'000;
  constexpr uint32_t kBufferFlush = 65536;
  constexpr uint32_t kBufferRequest = 458752;
  if (!enabled(ActivityKind::kOverhead)) return;
  const int64_t start = clock.now();
  for (const uint32_t kind : {kBufferFlush, kBufferRequest}) {
    store::OverheadRow row{};
    row.overhead_kind = kind;
    row.object_kind = static_cast<uint8_t>(cupti::ObjectKind::kThread);
    row.process_id = static_cast<uint32_t>(pid);
    row.thread_id = worker_thread_id_.load(std::memory_order_relaxed);
    row.start_ns = kind == kBufferFlush ? start : start + kDuration;
    row.end_ns = row.start_ns + kDuration;
    const auto record = record_of<cupti::Overhead>(row);
    buffers.append_late(&record, strides_[record.kind]);
  }
}

void Simulator::jit(uint32_t operation, uint32_t device, uint64_t cache_bytes, int64_t duration_ns) {
  ApiCall call = begin_call(0, callback_id("cuModuleLoadData"));
  const int64_t start = clock.take(duration_ns);
  call.end_ns = start + duration_ns;
  if (enabled(ActivityKind::kJit)) {
    ThreadState& here = thread();
    store::JitOperationRow row{};
    row.start_ns = start;
    row.end_ns = call.end_ns;
    row.jit_operation_type = static_cast<uint8_t>(operation);
    row.jit_entry_type = static_cast<uint8_t>(cupti::JitEntryType::kPtxToCubin);
    row.device_id = device;
    row.process_id = static_cast<uint32_t>(pid);
    row.thread_id = system_thread_ids.load() ? here.system_thread_id : here.posix_thread_id;
    row.correlation_id = call.correlation_id;
    row.jit_id = call.correlation_id;
    row.cache_bytes = cache_bytes;
    write(record_of<cupti::Jit>(row), buffer_of(here));
  }
  end_call(call);
}

}  // namespace collector::simulator
