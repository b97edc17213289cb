// The simulated machine: devices with contexts and streams, the program's API calls, and CUPTI's view of both.
//
// One Simulator is current at a time. A closed simulator is kept until the process ends, because a client may still
// hold pointers into it (kernel names, contexts).
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cupti/abi.h"
#include "simulator/buffers.h"
#include "simulator/callback_names.h"
#include "simulator/clock.h"
#include "simulator/control.h"
#include "simulator/faults.h"
#include "simulator/graphs.h"
#include "simulator/memory.h"
#include "simulator/misuse.h"
#include "simulator/names.h"
#include "simulator/subscribers.h"
#include "simulator/version.h"
#include "threads/mutex.h"

namespace collector::simulator {

// Of the times of a record: that of the registered callback if there is one, or CUPTI's own.
enum class RecordClock : uint8_t { kCallbacks, kOwn };

using TimestampCallback = uint64_t (*)();

struct Context {
  uint32_t id;
  uint32_t device;
};

// 0 for the default stream of a context, and -1, the next more urgent priority, for all other streams.
int32_t stream_priority(uint32_t stream_id);

// The state that CUPTI and the driver keep per thread.
struct ThreadState {
  RecordBuffer buffer;
  // The pushed ids, by external kind.
  std::array<std::vector<uint64_t>, 8> external_ids;
  std::vector<Context*> contexts;
  Graph* captured = nullptr;  // the graph that the thread's calls are captured into
  uint32_t captured_stream = 0;
  uint32_t system_thread_id = 0;
  uint32_t posix_thread_id = 0;
};

// The time of an API call and its ids in the records.
struct ApiCall {
  uint32_t correlation_id = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t runtime_id = 0;  // callback ids; 0 = not called through this domain
  uint32_t driver_id = 0;
  uint32_t return_value = 0;
  const void* params = nullptr;  // its arguments; only of cupti::kGraphUpdateCalls
};

// The value of bytes that have no meaning in the simulated version.
constexpr uint8_t kNoise = 0xA5;

class Simulator {
 public:
  Simulator(const SimConfig& config, Release release);

  // The current simulator. If there is none, one is opened from the environment (COLLECTOR_SIMULATED_CUDA,
  // COLLECTOR_SIMULATED_DRIVER, COLLECTOR_SIMULATED_DEVICES).
  static Simulator& current();
  static void open(const SimConfig& config, Release release);
  void close();

  const SimConfig config;
  const Release release;
  const int driver_version;
  const std::string device_name;
  const pid_t pid = getpid();
  // Whether this process was forked from the one that opened it. Costs no system call: a launch must not either.
  bool is_inherited() const { return forks_ != forks.load(std::memory_order_relaxed); }
  Clock clock;
  Faults faults;
  MisuseCounters misuses;
  Buffers buffers;
  Names names;
  AllocatedMemory memory;
  Graphs graphs;
  ThreadState& thread();
  bool alive() const { return !closed_.load(std::memory_order_acquire); }

  // -- The program (control functions).
  // The correlation id of the (first) call; 0 if the context does not belong to the device.
  uint32_t execute(const SimActivity& activity, int64_t duration_ns, uint64_t count);
  void replay(const SimActivity* activities, size_t count);
  // `executable`: the graph if the program built it here; otherwise it was built before CUPTI was attached.
  uint32_t launch_graph(const SimActivity* nodes, const int64_t* durations_ns, size_t count, uint32_t graph_id,
                        const ExecutableGraph* executable = nullptr);
  // Until end_capture, the calls of this thread add nodes to the graph. Null: a capture has begun already.
  // `into`: a graph to which they are added; null: a new one.
  Graph* begin_capture(uint32_t stream, Graph* into);
  bool end_capture();
  ExecutableGraph* instantiate(Graph* graph);
  Graph* clone_graph(Graph* graph);
  // Returns false if the graphs differ in their nodes.
  bool update(ExecutableGraph* executable, Graph* graph);
  void add_empty_node(Graph* graph);
  // Adds a copy of `child` as a node.
  void add_child_graph(Graph* graph, Graph* child);
  // Adds a conditional node, whose empty body is returned. `runs`: whether the body runs in each launch, or never.
  Graph* add_conditional(Graph* graph, bool runs);
  bool set_kernel(ExecutableGraph* executable, Graph* graph, uint32_t place, const char* name, int64_t duration_ns);
  // Gives the nodes of the child graph at a place of `graph` the parameters of `child`, whose nodes are as many.
  bool set_child_graph(ExecutableGraph* executable, Graph* graph, uint32_t place, Graph* child);
  void destroy(Graph* graph);
  void destroy(ExecutableGraph* executable);
  uint32_t launch(const ExecutableGraph& executable, uint32_t stream);
  uint32_t synchronize(uint32_t device, int64_t stream, uint32_t launch);
  // Whether a stream has finished its work.
  bool query(uint32_t device, uint32_t stream);
  // Records an event, 0: a new one, and returns it; returns 0 if there is no such event.
  uint32_t record_event(uint32_t device, uint32_t stream, uint32_t event);
  bool wait_event(uint32_t device, uint32_t stream, uint32_t event);
  bool synchronize_event(uint32_t event);
  uint32_t plain_call(uint32_t runtime_id, uint32_t driver_id);
  // The address of new memory, or 0 if there is not enough. With a stream, the memory comes from the device's pool, in
  // the stream's order.
  uint64_t allocate(uint32_t device, uint64_t bytes, cupti::MemoryKind kind, int64_t stream, uint32_t launch);
  // Returns false if nothing is allocated at the address.
  bool free(uint64_t address, int64_t stream, uint32_t launch);
  void overhead(uint32_t overhead_kind, int64_t duration_ns);
  // The driver compiles PTX (3) for a device, or reads (1) or writes (2) its cache, within a call that loads a module.
  void jit(uint32_t operation, uint32_t device, uint64_t cache_bytes, int64_t duration_ns);
  Context* context(uint32_t id);
  Context* primary_context(uint32_t device);
  uint32_t create_context(uint32_t device);
  // A stream is created when it is first used.
  void use_stream(uint32_t context_id, uint32_t stream_id);
  void write_driver_streams(uint32_t context_id);
  // Whether a device has run any work.
  bool used(uint32_t device);
  bool wait_until_idle(int64_t timeout_ms);

  // -- CUPTI (exports).
  cupti::Result enable(uint32_t kind);
  cupti::Result disable(uint32_t kind);
  // Writes the records of existing objects, for a kind whose records are otherwise written when an object is created.
  void dump(cupti::ActivityKind kind);
  bool enabled(cupti::ActivityKind kind) const;
  // Whether the nodes of graphs have no records of their own.
  bool records_whole_graphs() const;
  cupti::Result flush(bool forced);
  void set_flush_period(uint32_t milliseconds);
  // `holder` becomes the name of the client that has subscribed already.
  cupti::Result subscribe(void** handle, const Subscribers::Request& request, std::string& holder);
  Subscribers subscribers;
  // The functions of the Activity API for the process (V1), or those for a subscriber (V2): the first used form
  // excludes the other. `for_subscriber` null: of V1.
  cupti::Result use_form(const void* for_subscriber);
  bool is_of_subscribers() const { return form_.load() == Form::kOfSubscriber; }
  cupti::Result filter_api(cupti::ActivityKind kind, uint32_t callback_id, bool on);
  cupti::Result register_timestamps(TimestampCallback callback);
  // As if another tool had registered a callback that counts ticks, `registrations` times.
  void count_ticks(int64_t per_us, uint32_t registrations);
  int64_t cupti_now() const { return stamp(clock.now()); }
  cupti::Result attribute(uint32_t attribute, uint64_t* value) const;
  cupti::Result set_attribute(uint32_t attribute, uint64_t value);
  std::atomic<bool> system_thread_ids{false};
  std::atomic<bool> latency_timestamps{false};
  std::atomic<bool> all_sync_records{true};
  // What every call of the program returns since a launch has failed; 0: none has.
  std::atomic<uint32_t> context_error{0};

  // -- Statistics, for sim_statistic.
  std::array<std::atomic<uint64_t>, 64> records_by_kind{};
  std::array<std::atomic<uint64_t>, kFunctionCount> calls{};
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> graph_launches{0};

  // The calls of one client in order, without those made per record or per operation.
  struct LoggedCall {
    const char* function;
    uint32_t argument;
    uint32_t result;
  };
  void log(size_t function, uint32_t argument, uint32_t result);
  std::vector<LoggedCall> logged_calls();

 private:
  // An activity that is scheduled on the device.
  struct Work {
    SimActivity activity;
    RecordBuffer* buffer;
    uint64_t sequence;
    bool operator>(const Work& other) const {
      return std::pair(activity.end_ns, sequence) > std::pair(other.activity.end_ns, other.sequence);
    }
  };

  RecordBuffer& buffer_of(ThreadState& thread) { return per_thread_buffers_.load() ? thread.buffer : shared_buffer_; }
  ApiCall begin_call(uint32_t runtime_id, uint32_t driver_id, const void* params = nullptr);
  void end_call(const ApiCall& call);
  void write_api(const ApiCall& call, ThreadState& thread);
  void write_external(uint32_t correlation_id, ThreadState& thread);
  void notify_subscriber(const ApiCall& call, bool exit) const;
  void notify_graph(cupti::ResourceCallback callback_id, const cupti::GraphData& graph,
                    Context* context = nullptr) const;
  void notify_parameters_set(const ExecutableGraph& executable, GraphNode& node);
  void notify_destroyed(std::initializer_list<Graph*> destroyed);
  GraphNode* add_node(Graph& graph, const GraphNode& content, const GraphNode* dependency, GraphNode* original);
  static uint32_t node_type(const GraphNode& node);
  Graph* new_graph();
  Graph* copy_graph(const Graph& original);
  Graph* lower_graph(const Graph& graph);
  void inline_graphs(Graph& graph);
  void capture(const SimActivity& activity, int64_t duration_ns);
  void write_graph_trace(uint32_t graph_id, uint32_t correlation_id, const std::vector<SimActivity>& nodes);
  // Whether a client has enabled a kind, and whether one has done this or subscribed.
  bool has_enabled() const;
  bool attached() const;
  bool recorded(const SimActivity& activity) const;
  // Whether the launch of a graph fails because copies between GPUs were recorded in an earlier session.
  bool fails(uint32_t graph_id, const ExecutableGraph* executable);
  std::pair<uint32_t, uint32_t> callback_ids(const SimActivity& activity) const;
  void schedule(SimActivity& activity, int64_t earliest_ns, int64_t duration_ns) REQUIRES(device_mutex_);
  // Puts an activity on its stream; it is recorded when it is over.
  void enqueue(SimActivity activity, int64_t earliest_ns, int64_t duration_ns, RecordBuffer& buffer);
  void write_memory_operation(cupti::MemoryOperationType type, const MemoryBlock& block, const ApiCall& call,
                              int64_t stream);
  void write_synchronization(cupti::SynchronizationType type, const ApiCall& call, uint32_t context_id,
                             uint32_t stream_id, uint32_t event_id, uint64_t sync_id);
  void write_activity(SimActivity activity, RecordBuffer& buffer);
  bool precede(RecordBuffer& buffer);
  void spoil(SimActivity& activity);
  // A record of the simulated version with the values of a row; the row's fields have the same names.
  template <typename Record, typename Values>
  Record record_of(const Values& values, RecordClock times_of = RecordClock::kCallbacks) const {
    Record record;
    blank(release.cuda, kNoise, record);
    fill(values, release.cuda, record);
    if (times_of == RecordClock::kCallbacks) stamp(record);
    return record;
  }
  template <typename Record>
  auto stamp(Record& record) const -> decltype(record.end, void()) {
    record.start = static_cast<uint64_t>(stamp(static_cast<int64_t>(record.start)));
    record.end = static_cast<uint64_t>(stamp(static_cast<int64_t>(record.end)));
  }
  template <typename Record>
  auto stamp(const Record& record) const -> decltype(record.kind, void()) {}
  void stamp(cupti::Memory& record) const {
    record.timestamp = static_cast<uint64_t>(stamp(static_cast<int64_t>(record.timestamp)));
  }
  // A time of the simulated clock on that of the registered callback; 0 stays 0.
  int64_t stamp(int64_t time_ns) const;
  template <typename Record>
  void write(const Record& record, RecordBuffer& buffer) {
    write(record.kind, &record, strides_[record.kind], buffer);
  }
  void write(uint32_t kind, const void* record, size_t bytes, RecordBuffer& buffer);
  void complete_due(bool forced);
  // A kernel has failed: no work on the devices ends any more, and records that the client does not have yet lose their
  // times.
  void fail(uint32_t code);
  void forget_times(RecordBuffer& buffer);
  void overheads_of_flush();
  void work();
  void wake();
  int64_t& stream_tail(uint32_t context, uint32_t stream) REQUIRES(device_mutex_) { return tails_[{context, stream}]; }
  std::vector<RecordBuffer*> all_buffers();
  // Those in which no record is incomplete. CUPTI takes the place of a kernel's record in a buffer at its launch.
  std::vector<RecordBuffer*> complete_buffers();
  void await(const SimActivity& activity, RecordBuffer& buffer) REQUIRES(device_mutex_);

  static std::atomic<int> forks;  // that led to this process
  const int forks_ = forks.load(std::memory_order_relaxed);

  std::atomic<bool> closed_{false};
  const uint64_t generation_;

  threads::Mutex threads_mutex_;
  std::vector<std::unique_ptr<ThreadState>> threads_ GUARDED_BY(threads_mutex_);
  RecordBuffer shared_buffer_;
  std::atomic<bool> per_thread_buffers_;

  threads::Mutex device_mutex_;
  std::map<std::pair<uint32_t, uint32_t>, int64_t> tails_ GUARDED_BY(device_mutex_);
  std::priority_queue<Work, std::vector<Work>, std::greater<>> pending_ GUARDED_BY(device_mutex_);
  std::map<RecordBuffer*, size_t> unfinished_ GUARDED_BY(device_mutex_);  // of pending_, by buffer

  struct Event {
    uint32_t context_id;
    int64_t recorded_ns;
    uint64_t sync_id;  // of its last recording
  };
  std::vector<Event> events_ GUARDED_BY(device_mutex_);
  uint64_t last_sync_id_ GUARDED_BY(device_mutex_) = 1000;
  std::vector<std::unique_ptr<Context>> contexts_ GUARDED_BY(device_mutex_);
  std::set<std::pair<uint32_t, uint32_t>> streams_ GUARDED_BY(device_mutex_);  // context, stream
  uint64_t sequence_ GUARDED_BY(device_mutex_) = 0;
  std::set<std::pair<bool, uint32_t>> launched_graphs_ GUARDED_BY(device_mutex_);  // whether CUPTI knows it, id
  std::atomic<bool> has_copied_beside_peer_copies_{false};                         // in this session
  std::atomic<bool> has_peer_copies_of_earlier_session_{false};

  threads::Mutex completing_;
  threads::Mutex worker_mutex_;
  std::condition_variable_any worker_wakes_;
  bool worker_due_ GUARDED_BY(worker_mutex_) = false;
  std::atomic<uint32_t> flush_period_ms_{0};
  std::thread worker_;
  std::atomic<uint32_t> worker_thread_id_{0};

  std::array<std::atomic<bool>, 64> enabled_{};
  std::array<std::array<std::atomic<bool>, cupti::kCallbackIds>, 2> muted_{};
  std::array<std::atomic<uint64_t>, 32> attributes_{};
  std::atomic<uint32_t> next_correlation_{1};
  std::atomic<int64_t> next_grid_id_{1};
  std::atomic<uint64_t> device_records_{0};

  enum class Form : uint8_t { kNone, kOfProcess, kOfSubscriber };
  std::atomic<Form> form_{Form::kNone};

  std::atomic<int64_t> timestamp_offset_ns_{0};
  std::atomic<int64_t> ticks_per_us_{0};  // 0: nanoseconds are counted
  std::atomic<uint32_t> timestamp_registrations_{0};
  std::atomic<int64_t> wrong_clock_records_{0};
  const int64_t boot_ns_;

  std::array<uint32_t, 64> strides_{};

  threads::Mutex log_mutex_;
  std::vector<LoggedCall> log_ GUARDED_BY(log_mutex_);
};

}  // namespace collector::simulator
