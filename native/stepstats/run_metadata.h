// The numbers of the fields around a recorded step, and these fields as wire bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepstats/wire.h"
#include "stepstats/wire_sink.h"

namespace collector::stepstats {

inline constexpr uint32_t kRunMetadataStep = 1;
inline constexpr uint32_t kRunMetadataProvenance = 100001;
inline constexpr uint32_t kRunMetadataCapture = 100002;
inline constexpr uint32_t kCaptureRows = 8;  // of Capture

// The head of the field step_stats, which a step without devices does not have.
template <typename Sink>
void put_step_head(Sink& sink, size_t step_bytes) {
  if (step_bytes == 0) return;
  sink.put_varint(make_tag(kRunMetadataStep, kBytes));
  sink.put_varint(step_bytes);
}

// The fields behind the step. `rows_bytes` of Capture.rows follow, which belong to the field capture.
template <typename Sink>
void put_capture_head(Sink& sink, std::string_view provenance, std::string_view capture, size_t rows_bytes) {
  sink.put_varint(make_tag(kRunMetadataProvenance, kBytes));
  sink.put_varint(provenance.size());
  sink.put_raw(provenance);
  sink.put_varint(make_tag(kRunMetadataCapture, kBytes));
  sink.put_varint(capture.size() + rows_bytes);
  sink.put_raw(capture);
}

}  // namespace collector::stepstats
