// Encoders of the devices of a recorded step, in the order in which the devices are written.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "stepstats/recorded_step.h"

namespace collector::stepstats {

// One or several devices in the wire format of StepStats. They are measured when the encoder is made.
class DeviceEncoder {
 public:
  DeviceEncoder() = default;
  virtual ~DeviceEncoder() = default;
  DeviceEncoder(const DeviceEncoder&) = delete;
  DeviceEncoder& operator=(const DeviceEncoder&) = delete;

  virtual size_t num_bytes() const = 0;
  // Writes num_bytes() bytes, and returns their end.
  virtual char* write(char* to) const = 0;
};

using DeviceEncoders = std::vector<std::unique_ptr<const DeviceEncoder>>;

// They throw std::invalid_argument if a table lacks a column or a value is out of range. `step` must outlive them.

// The devices of the host: annotations, API calls, and the ranges that files of other programs have besides.
void add_host_devices(const RecordedStep& step, DeviceEncoders& encoders);
// The devices of tables with neither calls nor GPU work.
void add_side_devices(const RecordedStep& step, DeviceEncoders& encoders);
// The devices of GPUs: per GPU all its work, the work of each stream, and its copies and memsets.
void add_gpu_devices(const RecordedStep& step, DeviceEncoders& encoders);
// The launches of graphs, one device for each GPU.
void add_graph_devices(const RecordedStep& step, DeviceEncoders& encoders);

}  // namespace collector::stepstats
