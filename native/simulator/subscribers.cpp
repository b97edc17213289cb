#include "simulator/subscribers.h"

#include <algorithm>

namespace collector::simulator {

using cupti::Result;

std::string Subscribers::described(const std::string& name) {
  return "CUPTI for " + (name.empty() ? "<not provided>" : name);
}

Result Subscribers::subscribe(void** handle, const Request& request, bool may_share, std::string& holder) {
  const threads::MutexLock lock(mutex_);
  const auto first = std::find_if(subscribers_.begin(), subscribers_.end(),
                                  [](const Subscriber& subscriber) { return subscriber.is_used.load(); });
  if (first != subscribers_.end()) holder = described(first->name);
  const bool is_excluded = std::any_of(subscribers_.begin(), subscribers_.end(), [&](const Subscriber& subscriber) {
    return subscriber.is_used.load() && !(subscriber.allows_others && request.allows_others);
  });
  const auto free = std::find_if(subscribers_.begin(), subscribers_.end(),
                                 [](const Subscriber& subscriber) { return !subscriber.is_used.load(); });
  if (is_excluded || free == subscribers_.end() || (request.allows_others && !may_share)) {
    return Result::kMultipleSubscribersNotSupported;
  }
  free->is_used.store(true);
  free->allows_others = request.allows_others;
  free->name = request.name;
  free->userdata.store(request.userdata);
  free->callback.store(request.callback, std::memory_order_release);
  *handle = &*free;
  return Result::kSuccess;
}

Result Subscribers::unsubscribe(const void* handle) {
  const threads::MutexLock lock(mutex_);
  auto* const subscriber = const_cast<Subscriber*>(find(handle));
  if (subscriber == nullptr) return Result::kInvalidParameter;
  subscriber->callback.store(nullptr, std::memory_order_release);
  for (auto& domain : subscriber->on) {
    for (auto& on : domain) on.store(false, std::memory_order_relaxed);
  }
  subscriber->is_used.store(false);
  return Result::kSuccess;
}

Result Subscribers::enable_callbacks(bool on, const void* handle, uint32_t domain, int64_t callback_id) {
  auto* const subscriber = const_cast<Subscriber*>(find(handle));
  if (subscriber == nullptr || domain == 0 || domain > 6) return Result::kInvalidParameter;
  if (domain >= subscriber->on.size()) return Result::kSuccess;  // sync, NVTX, state: nothing is reported
  if (callback_id >= static_cast<int64_t>(cupti::kCallbackIds)) return Result::kInvalidParameter;
  for (size_t id = 0; id < cupti::kCallbackIds; ++id) {
    if (callback_id < 0 || id == static_cast<size_t>(callback_id)) subscriber->on[domain][id].store(on);
  }
  return Result::kSuccess;
}

void Subscribers::silence() {
  for (Subscriber& subscriber : subscribers_) subscriber.callback.store(nullptr);
}

bool Subscribers::any() const {
  return std::any_of(subscribers_.begin(), subscribers_.end(),
                     [](const Subscriber& subscriber) { return subscriber.is_used.load(); });
}

const Subscribers::Subscriber* Subscribers::find(const void* handle) const {
  for (const Subscriber& subscriber : subscribers_) {
    if (handle == &subscriber && subscriber.is_used.load()) return &subscriber;
  }
  return nullptr;
}

}  // namespace collector::simulator
