// The simulator's control functions, which collector.testing.SimulatedGpu calls through ctypes, and their structs.
// collector/testing/simulator/simulated_gpu.py mirrors these structs field by field.
#pragma once

#include <cstdint>

extern "C" {

struct SimConfig {
  int32_t cuda;            // 12040 = 12.4: the version whose records and functions are simulated
  uint32_t api_version;    // a patch release by its cuptiGetVersion number; 0 = the newest of `cuda`
  int32_t driver_version;  // the result of cuDriverGetVersion; 0 = same as `cuda`
  int32_t devices;
  int64_t start_ns;           // the clock's first time; negative = CLOCK_REALTIME
  int64_t api_call_ns;        // the duration of one CUDA call
  int64_t launch_latency_ns;  // from the end of the call to the earliest start on the device
  int64_t gap_ns;             // between two activities of one stream
  int32_t follow_real_time;
  int32_t deliver_from_caller;  // the filling thread returns full buffers, instead of the worker
  int32_t abort_on_fatal;       // ends the process where the real library would crash
  int32_t reserved;
  const char* device_name;
};

enum SimType : uint32_t { kSimKernel = 0, kSimMemcpy = 1, kSimMemset = 2, kSimPeerMemcpy = 3 };

// How an activity was launched, as bits.
enum SimLaunch : uint32_t {
  kSimNoCall = 0,
  kSimRuntimeCall = 1,
  kSimDriverCall = 2,
  kSimNoPeerAccess = 8,   // of a peer copy: the devices cannot reach each other's memory
  kSimLatencyStamps = 4,  // set at launch if CUPTI is to record queued and submitted times
};

// One activity: to be executed (start_ns and end_ns are ignored) or replayed unchanged. Values that have a column have
// its name.
struct SimActivity {
  int64_t start_ns;
  int64_t end_ns;
  int64_t launch_start_ns;  // replay: the API call of the launch; both 0 = invented before the activity
  int64_t launch_end_ns;
  uint64_t num_bytes;
  uint64_t graph_node_id;
  uint64_t source_graph_node_id;  // the node's id in the graph that was instantiated
  const char* name;
  uint32_t type;    // SimType
  uint32_t launch;  // SimLaunch bits
  uint32_t device_id;
  uint32_t context_id;  // 0 = the device's primary context
  uint32_t stream_id;
  uint32_t correlation_id;  // replay: 0 = the next one
  int32_t grid_x, grid_y, grid_z;
  int32_t block_x, block_y, block_z;
  uint32_t cluster_x, cluster_y, cluster_z;
  uint32_t registers_per_thread;
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint32_t local_bytes_per_thread;
  uint32_t launch_type;
  uint32_t graph_id;
  uint32_t copy_kind;
  uint32_t src_kind;
  uint32_t dst_kind;
  uint32_t src_device_id;
  uint32_t dst_device_id;
  uint32_t is_async;
  uint32_t value;
  uint32_t memory_kind;
};

struct SimLatency {
  uint64_t count;
  uint64_t total_ns;
  uint64_t max_ns;
  uint64_t p50_ns;
  uint64_t p99_ns;
  uint64_t p9999_ns;
};
}
