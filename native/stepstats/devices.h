// The parts of a device's name: the processor, its stream, and its task.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collector::stepstats {

// The kinds of processes in a trace, in the order in which viewers should show them.
enum class ProcessKind : uint8_t { kGpu, kOther, kHost };

// The kinds of devices, in the order of the rows of their process.
enum class DeviceKind : uint8_t { kStream, kAllStreams, kOther, kCopies };

struct DeviceName {
  ProcessKind process_kind = ProcessKind::kOther;
  DeviceKind kind = DeviceKind::kOther;
  bool on_gpu = false;      // work of a GPU, as opposed to the host's
  std::string_view prefix;  // "/job:worker/replica:0/task:3", or empty
  std::string_view unit;    // the processor with its prefix: "/job:worker/replica:0/task:3/gpu:0"
  std::string_view stream;  // "7", "7.2"; empty: no stream
  std::string process;      // for display: "GPU 0"; with a prefix "worker 3 GPU 0"
  std::string track;        // for display: "stream 7", "copies", "ops"
};

// Parses the names of this project and those of all versions of TensorFlow's tracers.
DeviceName parse_device_name(std::string_view device);

}  // namespace collector::stepstats
