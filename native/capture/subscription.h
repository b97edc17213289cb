// A session's state in CUPTI: the subscription, attributes, activity kinds and filters, and their removal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cupti/activity_api.h"
#include "cupti/failure.h"
#include "cupti/library.h"

namespace collector::capture {

// Not thread-safe. `disable` and `close` undo all earlier steps, also after a step that failed.
class Subscription {
 public:
  // Subscribes, sets the attributes and registers the buffer callbacks. `share`: continue if another client of this
  // process holds the subscription.
  // Where the clients of this process share CUPTI, it is joined. `on_callback` is called when CUDA graphs are built, if
  // we have a subscription.
  std::optional<cupti::Failure> open(const cupti::Library& library, bool share, const cupti::BufferCallbacks& on_buffer,
                                     cupti::SubscriberCallback on_callback);

  // From now on `on_callback` is called about cuProfilerStart and cuProfilerStop, too.
  std::optional<cupti::Failure> watch_profiler_calls();

  // The same about functions, by domain and id, as far as the library lets them be watched.
  void watch_calls(const std::set<std::pair<uint32_t, uint32_t>>& functions);

  // Enables those of the kinds that are not enabled yet, in this order, except for kinds that an older library does not
  // have, and then leaves out the frequent API calls without information.
  std::optional<cupti::Failure> enable(const std::vector<cupti::ActivityKind>& kinds);

  // Has CUPTI record each launch of a graph as one activity instead of its nodes; false: the library cannot.
  bool record_whole_graphs();

  // Disables the enabled kinds in reverse order: all, or some.
  void disable();
  void disable(const std::vector<cupti::ActivityKind>& kinds);

  // Unsubscribes, except from a shared CUPTI, which then calls nothing back.
  void close();

  bool has_enabled() const { return !enabled_.empty(); }
  // Whether all API calls are recorded, those of the runtime and of the driver.
  bool has_calls() const;
  bool is_shared() const { return is_shared_; }

 private:
  cupti::ActivityApi& api() const { return library_->activity_api(); }
  std::optional<cupti::Failure> subscribe(bool share, cupti::SubscriberCallback on_callback);
  // Whether we are now one of several subscribers. `holder` becomes the name of the first one, or of the only one,
  // where several are possible.
  bool join(cupti::SubscriberCallback on_callback, std::string& holder);
  cupti::Result set_up(const cupti::BufferCallbacks& on_buffer);
  cupti::Result call_back(uint32_t domain, uint32_t id);
  void enable_graph_callbacks();
  void set_attributes();
  bool is_enabled(cupti::ActivityKind kind) const;
  void disable_kind(cupti::ActivityKind kind);
  void leave_out_noisy_calls();
  const std::vector<uint32_t>& noisy_calls(cupti::CallbackDomain domain);

  const cupti::Library* library_ = nullptr;
  void* handle_ = nullptr;
  bool is_shared_ = false;
  std::vector<std::pair<uint32_t, uint32_t>> called_back_;  // domains and ids
  std::vector<cupti::ActivityKind> enabled_;
  const cupti::Library* kernels_left_on_ = nullptr;  // see disable
  // The frequent calls of a library, by domain.
  const cupti::Library* noisy_calls_of_ = nullptr;
  std::map<cupti::CallbackDomain, std::vector<uint32_t>> noisy_calls_;
};

}  // namespace collector::capture
