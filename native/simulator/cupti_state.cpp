// The state that CUPTI's control calls change: kinds, attributes, the subscription, the timestamp callback.
#include <algorithm>
#include <chrono>
#include <thread>

#include "simulator/simulator.h"

namespace collector::simulator {

using cupti::ActivityKind;
using cupti::Attribute;
using cupti::Result;

bool Simulator::enabled(ActivityKind kind) const {
  return enabled_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
}

bool Simulator::records_whole_graphs() const {
  const bool is_chosen_for_all =
      attributes_[static_cast<size_t>(Attribute::kEnableMultiSubscriberGraphTrace)].load() == 1;
  return enabled(ActivityKind::kGraphTrace) || is_chosen_for_all;
}

Result Simulator::enable(uint32_t kind) {
  if (kind == 0 || kind > kLastKind) return Result::kInvalidKind;
  const auto asked = static_cast<ActivityKind>(kind);
  if (asked == ActivityKind::kKernel && enabled(ActivityKind::kConcurrentKernel)) return Result::kNotCompatible;
  if (asked == ActivityKind::kConcurrentKernel && enabled(ActivityKind::kKernel)) return Result::kNotCompatible;
  if (asked == ActivityKind::kKernel) misuses.count(Misuse::kSerialisingKernelKind);
  if (!buffers.has_callbacks()) misuses.count(Misuse::kNoBufferCallbacks);
  // Enabling an API kind resets the filter of its calls.
  if (asked == ActivityKind::kRuntime || asked == ActivityKind::kDriver) {
    for (auto& muted : muted_[asked == ActivityKind::kDriver ? 0 : 1]) muted.store(false, std::memory_order_relaxed);
  }
  const bool first = !has_enabled();
  if (first && timestamp_registrations_.load() > 1) wrong_clock_records_.store(timestamp_registrations_.load());
  enabled_[kind].store(true);
  return Result::kSuccess;
}

Result Simulator::disable(uint32_t kind) {
  if (kind == 0 || kind > kLastKind) return Result::kInvalidKind;
  if (static_cast<ActivityKind>(kind) == ActivityKind::kConcurrentKernel && release.api_version == 130000) {
    const threads::MutexLock lock(device_mutex_);
    if (!pending_.empty()) misuses.count(Misuse::kDisableDeadlock);
  }
  if (static_cast<ActivityKind>(kind) == ActivityKind::kMemcpy2 && has_copied_beside_peer_copies_.exchange(false)) {
    has_peer_copies_of_earlier_session_.store(release.cuda < 13050);
  }
  enabled_[kind].store(false);
  return Result::kSuccess;
}

Result Simulator::flush(bool forced) {
  if (in_client_callback()) {
    misuses.count(Misuse::kFlushInCallback);
    return Result::kInvalidParameter;
  }
  complete_due(forced);
  const bool requests_next = has_enabled() && faults.strikes(Fault::kEarlyRequest);
  buffers.flush(forced ? all_buffers() : complete_buffers(), forced, requests_next);
  overheads_of_flush();
  if (faults.strikes(Fault::kHeldFlush)) {
    while (faults.armed(Fault::kHeldFlush)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Result::kSuccess;
}

void Simulator::set_flush_period(uint32_t milliseconds) {
  flush_period_ms_.store(milliseconds);
  wake();
}

Result Simulator::subscribe(void** handle, const Subscribers::Request& request, std::string& holder) {
  if (faults.strikes(Fault::kSecondSubscriber, nullptr, {}, &holder)) {
    holder = Subscribers::described(holder);
    return Result::kMultipleSubscribersNotSupported;
  }
  const bool may_share = release.cuda >= 13030 && driver_version >= 13030;
  return subscribers.subscribe(handle, request, may_share, holder);
}

Result Simulator::use_form(const void* for_subscriber) {
  if (for_subscriber != nullptr && !subscribers.has(for_subscriber)) return Result::kInvalidParameter;
  const Form wanted = for_subscriber == nullptr ? Form::kOfProcess : Form::kOfSubscriber;
  Form used = Form::kNone;
  return form_.compare_exchange_strong(used, wanted) || used == wanted ? Result::kSuccess : Result::kNotCompatible;
}

bool Simulator::has_enabled() const {
  return std::any_of(enabled_.begin(), enabled_.end(), [](const std::atomic<bool>& on) { return on.load(); });
}

bool Simulator::attached() const { return subscribers.any() || has_enabled(); }

Result Simulator::filter_api(ActivityKind kind, uint32_t callback_id, bool on) {
  if (callback_id == 0 || callback_id >= cupti::kCallbackIds) return Result::kInvalidParameter;
  muted_[kind == ActivityKind::kDriver ? 0 : 1][callback_id].store(!on);
  return Result::kSuccess;
}

Result Simulator::register_timestamps(TimestampCallback callback) {
  if (callback == nullptr) return Result::kInvalidParameter;
  if (timestamp_registrations_.fetch_add(1) > 0) misuses.count(Misuse::kTimestampCallbackAgain);
  timestamp_offset_ns_.store(static_cast<int64_t>(callback()) - clock.now());
  return Result::kSuccess;
}

void Simulator::count_ticks(int64_t per_us, uint32_t registrations) {
  timestamp_registrations_.fetch_add(registrations);
  ticks_per_us_.store(per_us);
}

int64_t Simulator::stamp(int64_t time_ns) const {
  if (time_ns == 0) return 0;
  const int64_t per_us = ticks_per_us_.load(std::memory_order_relaxed);
  if (per_us == 0) return time_ns + timestamp_offset_ns_.load(std::memory_order_relaxed);
  const int64_t since_boot_ns = time_ns - boot_ns_;
  return since_boot_ns / 1000 * per_us + since_boot_ns % 1000 * per_us / 1000;
}

Result Simulator::attribute(uint32_t attribute, uint64_t* value) const {
  if (attribute >= attributes_.size()) return Result::kInvalidParameter;
  if (attribute == static_cast<uint32_t>(Attribute::kPerThreadActivityBuffer) && release.cuda < 12030) {
    return Result::kInvalidParameter;
  }
  *value = attributes_[attribute].load();
  return Result::kSuccess;
}

Result Simulator::set_attribute(uint32_t attribute, uint64_t value) {
  uint64_t before = 0;
  if (const Result result = this->attribute(attribute, &before); result != Result::kSuccess) return result;
  attributes_[attribute].store(value);
  if (attribute == static_cast<uint32_t>(Attribute::kZeroedOutActivityBuffer)) buffers.client_zeroes.store(value != 0);
  if (attribute == static_cast<uint32_t>(Attribute::kPerThreadActivityBuffer)) per_thread_buffers_.store(value != 0);
  if (attribute == static_cast<uint32_t>(Attribute::kThreadIdType)) system_thread_ids.store(value == 1);
  if (attribute == static_cast<uint32_t>(Attribute::kEnableAllSyncRecords)) all_sync_records.store(value != 0);
  return Result::kSuccess;
}

void Simulator::log(size_t function, uint32_t argument, uint32_t result) {
  constexpr size_t kLogged = 4096;
  const threads::MutexLock lock(log_mutex_);
  if (log_.size() < kLogged) log_.push_back({kFunctions[function].name.data(), argument, result});
}

std::vector<Simulator::LoggedCall> Simulator::logged_calls() {
  const threads::MutexLock lock(log_mutex_);
  return log_;
}

}  // namespace collector::simulator
