#include "stepstats/recorded_message.h"

#include <utility>

#include "stepstats/run_metadata.h"
#include "stepstats/wire_sink.h"

namespace collector::stepstats {

RecordedMessage::RecordedMessage(const RecordedStep& step, std::optional<StepSurroundings> surroundings)
    : encoder_(step), surroundings_(std::move(surroundings)), num_bytes_(encoder_.step_bytes()) {
  if (!surroundings_) return;
  Measure heads;
  put_step_head(heads, encoder_.step_bytes());
  put_capture_head(heads, surroundings_->provenance, surroundings_->capture, encoder_.capture_bytes());
  num_bytes_ += heads.num_bytes() + encoder_.capture_bytes();
}

void RecordedMessage::write(char* to) const {
  WireWriter head(to);
  if (surroundings_) put_step_head(head, encoder_.step_bytes());
  WireWriter behind(encoder_.write_step(head.to()));
  if (!surroundings_) return;
  put_capture_head(behind, surroundings_->provenance, surroundings_->capture, encoder_.capture_bytes());
  encoder_.write_capture(behind.to());
}

}  // namespace collector::stepstats
