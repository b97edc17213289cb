#include "capture/launch_watch.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace collector::capture {
namespace {

bool begins_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// As ApiRole.LAUNCH in collector/recording/api_functions.py: it starts a kernel or a graph on a device.
bool is_launch(std::string_view name) {
  for (const std::string_view prefix : {"cudaGraphLaunch", "cuGraphLaunch", "cudaLaunch", "cuLaunch"}) {
    if (begins_with(name, prefix)) return !begins_with(name.substr(prefix.size()), "HostFunc");
  }
  return false;
}

bool is_wait(std::string_view name) {
  for (const std::string_view prefix : {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
                                        "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}) {
    if (begins_with(name, prefix)) return true;
  }
  return false;
}

}  // namespace

bool LaunchWatch::is_sticky(uint32_t error) {
  // CUDA's documentation: "the context cannot be used, so it must be destroyed", or the process must end. The runtime
  // returns the driver's numbers. The same ones have names in collector/recording/context_errors.py.
  constexpr std::array<uint32_t, 13> kSticky = {
      214,  // uncorrectable ECC error
      220,  // uncorrectable NVLink error
      700,  // illegal address
      702,  // launch timeout
      709,  // context is destroyed
      710,  // device-side assert
      714,  // hardware stack error
      715,  // illegal instruction
      716,  // misaligned address
      717,  // invalid address space
      718,  // invalid program counter
      719,  // launch failure
      721,  // contained error
  };
  return std::find(kSticky.begin(), kSticky.end(), error) != kSticky.end();
}

void LaunchWatch::begin(const cupti::Library& library, bool watch) {
  launching_.clear();
  waits_.clear();
  returned_.store(0, std::memory_order_relaxed);
  calls_.clear();
  newest_ = 0;
  has_newest_ = false;
  current_ = {};
  {
    const threads::MutexLock lock(mutex_);
    shown_ = {};
  }
  if (!watch) return;
  for (const auto domain : {cupti::CallbackDomain::kRuntimeApi, cupti::CallbackDomain::kDriverApi}) {
    for (uint32_t id = 1; id < cupti::kCallbackIds; ++id) {
      const std::string name = library.callback_name(domain, id);
      if (is_launch(name)) launching_.emplace(static_cast<uint32_t>(domain), id);
      if (is_wait(name)) waits_.emplace(static_cast<uint32_t>(domain), id);
    }
  }
  calls_.assign(kWindow, 0);
}

void LaunchWatch::advance_to(uint32_t correlation_id) {
  const uint32_t ahead = correlation_id - newest_;
  for (uint32_t step = 1; step <= std::min(ahead, kWindow); ++step) {
    uint8_t& marks = calls_[(newest_ + step) % kWindow];
    if (is_outstanding(marks)) --current_.outstanding;
    marks = 0;
  }
  newest_ = correlation_id;
}

void LaunchWatch::mark(uint32_t correlation_id, Mark mark) {
  if (!has_newest_) newest_ = correlation_id;  // the program may have made billions of calls before
  has_newest_ = true;
  if (static_cast<int32_t>(correlation_id - newest_) > 0) advance_to(correlation_id);
  if (newest_ - correlation_id >= kWindow) return;
  uint8_t& marks = calls_[correlation_id % kWindow];
  const bool before = is_outstanding(marks);
  marks = static_cast<uint8_t>(marks | mark);
  const bool after = is_outstanding(marks);
  if (after && !before) ++current_.outstanding;
  if (before && !after) --current_.outstanding;
}

template <typename Row>
void LaunchWatch::mark_finished(const store::Chunks<Row>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) mark(rows[i].correlation_id, kFinished);
  current_.rows += rows.size();
}

void LaunchWatch::notice(const store::Store& store) {
  const auto& calls = store.rows.of<store::ApiCallRow>();
  for (size_t i = 0; i < calls.size(); ++i) {
    const store::ApiCallRow& call = calls[i];
    if (call.return_value != 0) {
      if (current_.error == 0 && is_sticky(call.return_value)) {
        current_.error = call.return_value;
        current_.error_domain = call.domain;
        current_.error_callback = call.callback_id;
      }
    } else if (launching_.count({call.domain, call.callback_id}) != 0) {
      mark(call.correlation_id, kLaunched);
    }
  }
  current_.rows += calls.size();
  for (const auto& [key, stream] : store.streams()) {
    stream.rows.each([this](const auto& rows) { mark_finished(rows); });
  }
  mark_finished(store.rows.of<store::GraphLaunchRow>());
  const threads::MutexLock lock(mutex_);
  shown_ = current_;
}

void LaunchWatch::returned(uint32_t domain, uint32_t callback_id, uint32_t result) noexcept {
  if (!is_sticky(result)) return;
  uint64_t none = 0;
  const uint64_t error = uint64_t{result} << 32 | uint64_t{domain} << 16 | callback_id;
  returned_.compare_exchange_strong(none, error, std::memory_order_relaxed);
}

WatchedState LaunchWatch::state() {
  WatchedState state;
  {
    const threads::MutexLock lock(mutex_);
    state = shown_;
  }
  if (const uint64_t error = returned_.load(std::memory_order_relaxed); error != 0 && state.error == 0) {
    state.error = static_cast<uint32_t>(error >> 32);
    state.error_domain = static_cast<uint32_t>(error >> 16 & 0xFFFF);
    state.error_callback = static_cast<uint32_t>(error & 0xFFFF);
  }
  return state;
}

}  // namespace collector::capture
