#include "stepstats/recorded_step.h"

#include <memory>
#include <vector>

#include "stepstats/device_encoder.h"
#include "stepstats/rows_encoder.h"

namespace collector::stepstats {

struct RecordedStepEncoder::Parts {
  explicit Parts(const RecordedStep& of) {
    add_host_devices(of, devices);
    add_side_devices(of, devices);
    add_gpu_devices(of, devices);
    add_graph_devices(of, devices);
    for (const RecordedTable& table : of.without_node) rows.emplace_back(table);
  }

  DeviceEncoders devices;
  std::vector<RowsEncoder> rows;
};

RecordedStepEncoder::RecordedStepEncoder(const RecordedStep& step) : parts_(std::make_unique<Parts>(step)) {}
RecordedStepEncoder::~RecordedStepEncoder() = default;

size_t RecordedStepEncoder::step_bytes() const {
  size_t num_bytes = 0;
  for (const auto& encoder : parts_->devices) num_bytes += encoder->num_bytes();
  return num_bytes;
}

char* RecordedStepEncoder::write_step(char* to) const {
  for (const auto& encoder : parts_->devices) to = encoder->write(to);
  return to;
}

size_t RecordedStepEncoder::capture_bytes() const {
  size_t num_bytes = 0;
  for (const RowsEncoder& rows : parts_->rows) num_bytes += rows.num_bytes();
  return num_bytes;
}

char* RecordedStepEncoder::write_capture(char* to) const {
  for (const RowsEncoder& rows : parts_->rows) to = rows.write(to);
  return to;
}

}  // namespace collector::stepstats
