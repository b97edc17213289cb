// What a device's name says: which processor, which of its streams, whose it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "convert/events.h"

namespace collector::convert {

struct DeviceName {
  ProcessKind kind = ProcessKind::kOther;
  bool on_gpu = false;      // what a GPU did, rather than the host
  int64_t ordinal = -1;     // of the processor; -1: not said
  std::string_view prefix;  // "/job:worker/replica:0/task:3", or empty
  std::string_view unit;    // the processor with its prefix: "/job:worker/replica:0/task:3/gpu:0"
  std::string_view stream;  // "7", "7.2"; empty: no stream
  std::string track;        // "stream 7", "copies", "ops"
  std::string readable;     // "GPU 0 stream 7"; with a prefix "worker 3 GPU 0 stream 7"
};

// Understands this project's names and those of TensorFlow's tracers of all times.
DeviceName ParseDeviceName(std::string_view device);

}  // namespace collector::convert
