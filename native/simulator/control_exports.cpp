// The functions that collector.testing.SimulatedGpu calls, and the two by which a tracer can recognise a simulator.
#include "simulator/exports.h"

namespace {

using collector::simulator::Buffers;
using collector::simulator::callback_id;
using collector::simulator::function_index;
using collector::simulator::kFaultCount;
using collector::simulator::kFaults;
using collector::simulator::kFunctionCount;
using collector::simulator::kFunctions;
using collector::simulator::kLastKind;
using collector::simulator::kMisuseCount;
using collector::simulator::kMisuses;
using collector::simulator::Release;
using collector::simulator::release_of;
using collector::simulator::Simulator;

}  // namespace

// The result of cuptiGetVersion. The presence of this function shows that the library is a simulator.
SIMULATOR_EXPORT uint32_t collector_simulator_version() { return Simulator::current().release.api_version; }

// Different for every GPU simulated in this process: facts that were determined for one GPU are not valid for the next.
SIMULATOR_EXPORT const void* collector_simulator_instance() { return &Simulator::current(); }

// Whether the simulated version exports a symbol. One library simulates all versions, so dlsym also finds symbols that
// the version lacks.
SIMULATOR_EXPORT int collector_simulator_has(const char* symbol) {
  const size_t index = function_index(symbol);
  return index < kFunctionCount && kFunctions[index].since_cuda <= Simulator::current().release.cuda ? 1 : 0;
}

// Returns 0, or -1 for a version that is not in the table.
SIMULATOR_EXPORT int sim_open(const SimConfig* config) {
  const Release release = release_of(config->cuda, config->api_version);
  if (release.cuda == 0) return -1;
  Simulator::open(*config, release);
  return 0;
}

// Ends the current simulator's thread. The simulator still answers calls until another one is opened.
SIMULATOR_EXPORT void sim_close() { Simulator::current().close(); }

SIMULATOR_EXPORT uint32_t sim_execute(const SimActivity* activity, int64_t duration_ns, uint64_t count) {
  return Simulator::current().execute(*activity, duration_ns, count);
}

SIMULATOR_EXPORT void sim_replay(const SimActivity* activities, uint64_t count) {
  Simulator::current().replay(activities, count);
}

SIMULATOR_EXPORT uint32_t sim_launch_graph(const SimActivity* nodes, const int64_t* durations_ns, uint64_t count,
                                           uint32_t graph_id) {
  return Simulator::current().launch_graph(nodes, durations_ns, count, graph_id);
}

// -- Graphs: by their handles. 0 or -1: there is no such graph, or the call is not possible.

// `into`: null for a new graph.
SIMULATOR_EXPORT void* sim_begin_capture(uint32_t stream, void* into) {
  Simulator& simulator = Simulator::current();
  auto* const graph = simulator.graphs.graph(into);
  return into != nullptr && graph == nullptr ? nullptr : simulator.begin_capture(stream, graph);
}

SIMULATOR_EXPORT int sim_end_capture() { return Simulator::current().end_capture() ? 0 : -1; }

// For a graph that was built before CUPTI was attached, whose id no other graph has.
SIMULATOR_EXPORT uint32_t sim_new_graph_id() { return Simulator::current().graphs.new_id(); }

SIMULATOR_EXPORT uint32_t sim_graph_id(void* handle) {
  Simulator& simulator = Simulator::current();
  if (const auto* const graph = simulator.graphs.graph(handle)) return graph->id;
  const auto* const executable = simulator.graphs.executable(handle);
  return executable == nullptr ? 0 : executable->id;
}

SIMULATOR_EXPORT void* sim_instantiate(void* handle) {
  Simulator& simulator = Simulator::current();
  auto* const graph = simulator.graphs.graph(handle);
  return graph == nullptr ? nullptr : simulator.instantiate(graph);
}

SIMULATOR_EXPORT void* sim_clone_graph(void* handle) {
  Simulator& simulator = Simulator::current();
  auto* const graph = simulator.graphs.graph(handle);
  return graph == nullptr ? nullptr : simulator.clone_graph(graph);
}

SIMULATOR_EXPORT int sim_update_graph(void* executable, void* graph) {
  Simulator& simulator = Simulator::current();
  auto* const updated = simulator.graphs.executable(executable);
  auto* const source = simulator.graphs.graph(graph);
  return updated != nullptr && source != nullptr && simulator.update(updated, source) ? 0 : -1;
}

SIMULATOR_EXPORT int sim_add_empty_node(void* handle) {
  Simulator& simulator = Simulator::current();
  auto* const graph = simulator.graphs.graph(handle);
  if (graph == nullptr) return -1;
  simulator.add_empty_node(graph);
  return 0;
}

SIMULATOR_EXPORT int sim_add_child_graph(void* handle, void* added) {
  Simulator& simulator = Simulator::current();
  auto* const graph = simulator.graphs.graph(handle);
  auto* const child = simulator.graphs.graph(added);
  if (graph == nullptr || child == nullptr) return -1;
  simulator.add_child_graph(graph, child);
  return 0;
}

SIMULATOR_EXPORT void* sim_add_conditional(void* handle, int runs) {
  Simulator& simulator = Simulator::current();
  auto* const graph = simulator.graphs.graph(handle);
  return graph == nullptr ? nullptr : simulator.add_conditional(graph, runs != 0);
}

SIMULATOR_EXPORT int sim_set_kernel(void* executable, void* graph, uint32_t place, const char* name,
                                    int64_t duration_ns) {
  Simulator& simulator = Simulator::current();
  auto* const changed = simulator.graphs.executable(executable);
  auto* const source = simulator.graphs.graph(graph);
  const bool is_set =
      changed != nullptr && source != nullptr && simulator.set_kernel(changed, source, place, name, duration_ns);
  return is_set ? 0 : -1;
}

SIMULATOR_EXPORT int sim_set_child_graph(void* executable, void* graph, uint32_t place, void* child) {
  Simulator& simulator = Simulator::current();
  auto* const changed = simulator.graphs.executable(executable);
  auto* const source = simulator.graphs.graph(graph);
  auto* const content = simulator.graphs.graph(child);
  if (changed == nullptr || source == nullptr || content == nullptr) return -1;
  return simulator.set_child_graph(changed, source, place, content) ? 0 : -1;
}

SIMULATOR_EXPORT int sim_destroy_graph(void* handle) {
  Simulator& simulator = Simulator::current();
  if (auto* const graph = simulator.graphs.graph(handle)) return simulator.destroy(graph), 0;
  if (auto* const executable = simulator.graphs.executable(handle)) return simulator.destroy(executable), 0;
  return -1;
}

SIMULATOR_EXPORT uint32_t sim_launch_executable(void* handle, uint32_t stream) {
  Simulator& simulator = Simulator::current();
  const auto* const executable = simulator.graphs.executable(handle);
  return executable == nullptr ? 0 : simulator.launch(*executable, stream);
}

SIMULATOR_EXPORT uint32_t sim_synchronize(uint32_t device, int64_t stream, uint32_t launch) {
  return Simulator::current().synchronize(device, stream, launch);
}

SIMULATOR_EXPORT int sim_query(uint32_t device, uint32_t stream) {
  return Simulator::current().query(device, stream) ? 1 : 0;
}

SIMULATOR_EXPORT uint32_t sim_record_event(uint32_t device, uint32_t stream, uint32_t event) {
  return Simulator::current().record_event(device, stream, event);
}

SIMULATOR_EXPORT int sim_wait_event(uint32_t device, uint32_t stream, uint32_t event) {
  return Simulator::current().wait_event(device, stream, event) ? 0 : -1;
}

SIMULATOR_EXPORT int sim_synchronize_event(uint32_t event) {
  return Simulator::current().synchronize_event(event) ? 0 : -1;
}

// Makes the API calls with these names; one name may be empty. Returns 0 if a name is not in the table.
SIMULATOR_EXPORT uint32_t sim_api_call(const char* runtime_name, const char* driver_name) {
  const uint32_t runtime_id = callback_id(runtime_name);
  const uint32_t driver_id = callback_id(driver_name);
  if ((runtime_id == 0 && *runtime_name != '\0') || (driver_id == 0 && *driver_name != '\0')) return 0;
  if (runtime_id == 0 && driver_id == 0) return 0;
  return Simulator::current().plain_call(runtime_id, driver_id);
}

// Allocates memory of a CUpti_ActivityMemoryKind and returns its address; 0 if the device lacks free memory. Ordered by
// a stream unless `stream` is negative.
SIMULATOR_EXPORT uint64_t sim_allocate(uint32_t device, uint64_t bytes, uint32_t kind, int64_t stream,
                                       uint32_t launch) {
  return Simulator::current().allocate(device, bytes, static_cast<collector::cupti::MemoryKind>(kind), stream, launch);
}

SIMULATOR_EXPORT int sim_free(uint64_t address, int64_t stream, uint32_t launch) {
  return Simulator::current().free(address, stream, launch) ? 0 : -1;
}

SIMULATOR_EXPORT uint32_t sim_context_error() { return Simulator::current().context_error.load(); }

SIMULATOR_EXPORT void sim_overhead(uint32_t overhead_kind, int64_t duration_ns) {
  Simulator::current().overhead(overhead_kind, duration_ns);
}

SIMULATOR_EXPORT void sim_jit(uint32_t operation, uint32_t device, uint64_t cache_bytes, int64_t duration_ns) {
  Simulator::current().jit(operation, device, cache_bytes, duration_ns);
}

SIMULATOR_EXPORT uint32_t sim_create_context(uint32_t device) { return Simulator::current().create_context(device); }

SIMULATOR_EXPORT int64_t sim_now() { return Simulator::current().clock.now(); }

SIMULATOR_EXPORT void sim_advance(int64_t ns) {
  Simulator& simulator = Simulator::current();
  simulator.clock.take(ns);
}

SIMULATOR_EXPORT void sim_count_ticks(int64_t per_us, uint32_t registrations) {
  Simulator::current().count_ticks(per_us, registrations);
}

SIMULATOR_EXPORT int sim_wait_until_idle(int64_t timeout_ms) {
  return Simulator::current().wait_until_idle(timeout_ms) ? 0 : -1;
}

SIMULATOR_EXPORT int sim_reload_module(const char* name, const char* successor) {
  return Simulator::current().names.reload(name, successor) ? 0 : -1;
}

// -- Faults and misuses --------------------------------------------------------------------------------------------

SIMULATOR_EXPORT int sim_inject(const char* fault, int64_t count, int64_t skip, int64_t value, const char* target) {
  return Simulator::current().faults.arm(fault, count, skip, value, target) ? 0 : -1;
}

SIMULATOR_EXPORT void sim_return_kept_buffers() { Simulator::current().buffers.return_kept(); }

SIMULATOR_EXPORT void sim_clear_faults() { Simulator::current().faults.clear(); }

// A row of the fault table; null past its end. `struck` is the number of times that the fault has struck.
SIMULATOR_EXPORT const char* sim_fault(uint64_t index, const char** value_meaning, int64_t* default_value, int* lasting,
                                       const char** description, uint64_t* struck) {
  if (index >= kFaultCount) return nullptr;
  *value_meaning = kFaults[index].value;
  *default_value = kFaults[index].default_value;
  *lasting = kFaults[index].lasting ? 1 : 0;
  *description = kFaults[index].description;
  *struck = Simulator::current().faults.struck(index);
  return kFaults[index].name;
}

// A row of the misuse table; null past its end.
SIMULATOR_EXPORT const char* sim_misuse(uint64_t index, const char** description, int* fatal, uint64_t* counted) {
  if (index >= kMisuseCount) return nullptr;
  *description = kMisuses[index].description;
  *fatal = kMisuses[index].fatal ? 1 : 0;
  *counted = Simulator::current().misuses.of(index);
  return kMisuses[index].name;
}

// -- Statistics -----------------------------------------------------------------------------------------------------

struct SimCounts {
  uint64_t buffers_requested, buffers_completed, buffers_declined, buffers_outstanding, bytes_completed;
  uint64_t records_written, launches;
};

SIMULATOR_EXPORT void sim_counts(SimCounts* counts) {
  Simulator& simulator = Simulator::current();
  const Buffers::Counts buffers = simulator.buffers.counts();
  *counts = {buffers.requested, buffers.completed, buffers.declined,         buffers.outstanding,
             buffers.bytes,     buffers.records,   simulator.launches.load()};
}

SIMULATOR_EXPORT uint64_t sim_records_of_kind(uint32_t kind) {
  return kind <= kLastKind ? Simulator::current().records_by_kind[kind].load() : 0;
}

// A row of the table of exported functions and the number of its calls; null past its end.
SIMULATOR_EXPORT const char* sim_function(uint64_t index, uint64_t* called) {
  if (index >= kFunctionCount) return nullptr;
  *called = Simulator::current().calls[index].load();
  return kFunctions[index].name.data();
}

// The index-th logged CUPTI call; null past the end.
SIMULATOR_EXPORT const char* sim_logged_call(uint64_t index, uint32_t* argument, uint32_t* result) {
  const auto calls = Simulator::current().logged_calls();
  if (index >= calls.size()) return nullptr;
  *argument = calls[index].argument;
  *result = calls[index].result;
  return calls[index].function;
}

// The latency of the client's callbacks: 0 = buffer requests, 1 = buffer completions.
SIMULATOR_EXPORT void sim_callback_latency(uint32_t which, SimLatency* latency) {
  const Buffers& buffers = Simulator::current().buffers;
  *latency = which == 0 ? buffers.request_latency().summary() : buffers.complete_latency().summary();
}
