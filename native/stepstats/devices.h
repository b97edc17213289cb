// What a device's name says: which processor, which of its streams, whose it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collector::convert {

// What a process of a trace stands for, in the order in which viewers should show them.
enum class ProcessKind : uint8_t { kGpu, kOther, kHost };

// What a device holds, in the order of the rows of its process.
enum class DeviceKind : uint8_t { kStream, kAllStreams, kOther, kCopies };

struct DeviceName {
  ProcessKind process_kind = ProcessKind::kOther;
  DeviceKind kind = DeviceKind::kOther;
  bool on_gpu = false;      // what a GPU did, rather than the host
  std::string_view prefix;  // "/job:worker/replica:0/task:3", or empty
  std::string_view unit;    // the processor with its prefix: "/job:worker/replica:0/task:3/gpu:0"
  std::string_view stream;  // "7", "7.2"; empty: no stream
  std::string process;      // for people: "GPU 0"; with a prefix "worker 3 GPU 0"
  std::string track;        // for people: "stream 7", "copies", "ops"
};

// Understands this project's names and those of TensorFlow's tracers of all times.
DeviceName parse_device_name(std::string_view device);

}  // namespace collector::convert
