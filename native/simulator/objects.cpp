// The contexts and streams of the simulated machine, and CUPTI's records of what is made once.
#include "simulator/simulator.h"

namespace collector::simulator {

Context* Simulator::context(uint32_t id) {
  const std::lock_guard lock(device_mutex_);
  return id >= 1 && id <= contexts_.size() ? contexts_[id - 1].get() : nullptr;
}

Context* Simulator::primary_context(uint32_t device) {
  return device < static_cast<uint32_t>(config.devices) ? context(device + 1) : nullptr;
}

bool Simulator::used(uint32_t device) {
  if (memory.touched(device)) return true;
  const std::lock_guard lock(device_mutex_);
  for (const auto& [context_id, stream_id] : streams_) {
    if (contexts_[context_id - 1]->device == device) return true;
  }
  return false;
}

uint32_t Simulator::create_context(uint32_t device) {
  const std::lock_guard lock(device_mutex_);
  contexts_.push_back(std::make_unique<Context>(Context{static_cast<uint32_t>(contexts_.size() + 1), device}));
  return contexts_.back()->id;
}

void Simulator::use_stream(uint32_t context_id, uint32_t stream_id) {
  const std::lock_guard lock(device_mutex_);
  streams_.emplace(context_id, stream_id);
}

void Simulator::dump(cupti::ActivityKind kind) {
  switch (kind) {
    default:  // of other kinds nothing is kept
      break;
  }
}

}  // namespace collector::simulator
