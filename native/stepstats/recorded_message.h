// A recorded step as a whole message.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "stepstats/recorded_step.h"

namespace collector::stepstats {

// The wire bytes of a RunMetadata's provenance, and of its capture without rows.
struct StepSurroundings {
  std::string provenance;
  std::string capture;
};

// A StepStats, or a RunMetadata if the step has surroundings: measured by the constructor and written once memory is
// allocated.
class RecordedMessage {
 public:
  // `step` must outlive the message. Throws like RecordedStepEncoder.
  RecordedMessage(const RecordedStep& step, std::optional<StepSurroundings> surroundings);

  size_t num_bytes() const { return num_bytes_; }
  void write(char* to) const;

 private:
  RecordedStepEncoder encoder_;
  std::optional<StepSurroundings> surroundings_;
  size_t num_bytes_;
};

}  // namespace collector::stepstats
