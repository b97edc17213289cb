// A session's state in CUPTI: the subscription, attributes, activity kinds and filters, and their removal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cupti/failure.h"
#include "cupti/library.h"

namespace collector::capture {

// Not thread-safe. `disable` and `close` undo all earlier steps, also after a step that failed.
class Subscription {
 public:
  // Subscribes, sets the attributes and registers the buffer callbacks. `share`: continue if another client of this
  // process holds the subscription.
  // `on_callback` is called when CUDA graphs are built, if we hold the subscription.
  std::optional<cupti::Failure> open(const cupti::Library& library, bool share, cupti::BufferRequested on_request,
                                     cupti::BufferCompleted on_complete, cupti::SubscriberCallback on_callback);

  // From now on `on_callback` is called about cuProfilerStart and cuProfilerStop, too.
  std::optional<cupti::Failure> watch_profiler_calls();

  // Enables those of the kinds that are not enabled yet, in this order, except for kinds that an older library does not
  // have, and then leaves out the frequent API calls without information.
  std::optional<cupti::Failure> enable(const std::vector<cupti::ActivityKind>& kinds);

  // Has CUPTI record each launch of a graph as one activity instead of its nodes; false: the library cannot.
  bool record_whole_graphs();

  // Disables the enabled kinds in reverse order: all, or some.
  void disable();
  void disable(const std::vector<cupti::ActivityKind>& kinds);

  // Unsubscribes.
  void close();

  bool has_enabled() const { return !enabled_.empty(); }
  bool is_shared() const { return is_shared_; }

 private:
  std::optional<cupti::Failure> subscribe(bool share, cupti::SubscriberCallback on_callback);
  void enable_graph_callbacks();
  void set_attributes();
  bool is_enabled(cupti::ActivityKind kind) const;
  void disable_kind(cupti::ActivityKind kind);
  void leave_out_noisy_calls();
  const std::vector<uint32_t>& noisy_calls(cupti::CallbackDomain domain);

  const cupti::Library* library_ = nullptr;
  void* handle_ = nullptr;
  bool is_shared_ = false;
  std::vector<cupti::ActivityKind> enabled_;
  const cupti::Library* kernels_left_on_ = nullptr;  // see disable
  // The frequent calls of a library, by domain.
  const cupti::Library* noisy_calls_of_ = nullptr;
  std::map<cupti::CallbackDomain, std::vector<uint32_t>> noisy_calls_;
};

}  // namespace collector::capture
