// The clients that have subscribed: a single one, or several that all allow others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "cupti/abi.h"
#include "threads/mutex.h"

namespace collector::simulator {

using SubscriberCallback = void (*)(void* userdata, uint32_t domain, uint32_t callback_id, const void* data);

class Subscribers {
 public:
  struct Request {
    SubscriberCallback callback;
    void* userdata;
    std::string name;
    bool allows_others;
  };

  // CUPTI's answer to a question for the name of a subscriber, which may have given none (13.0.85).
  static std::string described(const std::string& name);

  // `may_share`: the version and the driver let several subscribe. `holder` becomes the name of the first subscriber.
  cupti::Result subscribe(void** handle, const Request& request, bool may_share, std::string& holder) EXCLUDES(mutex_);
  cupti::Result unsubscribe(const void* handle) EXCLUDES(mutex_);
  cupti::Result enable_callbacks(bool on, const void* handle, uint32_t domain, int64_t callback_id);
  // Ends all callbacks.
  void silence();

  bool has(const void* handle) const { return find(handle) != nullptr; }
  bool any() const;

  // Calls `each` with the callback and the data of every subscriber that wants to be called back here.
  template <typename Each>
  void notify(uint32_t domain, uint32_t callback_id, Each each) const {
    for (const Subscriber& subscriber : subscribers_) {
      const SubscriberCallback callback = subscriber.callback.load(std::memory_order_acquire);
      if (callback == nullptr || !subscriber.on[domain][callback_id].load(std::memory_order_relaxed)) continue;
      each(callback, subscriber.userdata.load(std::memory_order_relaxed));
    }
  }

 private:
  struct Subscriber {
    std::atomic<bool> is_used{false};
    bool allows_others = false;
    std::string name;
    std::atomic<SubscriberCallback> callback{nullptr};
    std::atomic<void*> userdata{nullptr};
    std::array<std::array<std::atomic<bool>, cupti::kCallbackIds>, 4> on{};
  };

  const Subscriber* find(const void* handle) const;

  threads::Mutex mutex_;
  std::array<Subscriber, 3> subscribers_;  // a handle is the address of its entry
};

}  // namespace collector::simulator
