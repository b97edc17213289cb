// A session's state in CUPTI: the subscription, attributes, activity kinds and filters, and their removal.
#pragma once

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
  // `on_graph` is called when CUDA graphs are built, if we hold the subscription.
  std::optional<cupti::Failure> open(const cupti::Library& library, bool share, cupti::BufferRequested on_request,
                                     cupti::BufferCompleted on_complete, cupti::SubscriberCallback on_graph);

  // Enables the kinds in this order, except for kinds that an older library does not have, and then leaves out the
  // frequent API calls without information.
  std::optional<cupti::Failure> enable(const std::vector<cupti::ActivityKind>& kinds);

  // Disables the enabled kinds in reverse order.
  void disable();

  // Unsubscribes.
  void close();

  bool has_enabled() const { return !enabled_.empty(); }
  bool is_shared() const { return is_shared_; }

 private:
  std::optional<cupti::Failure> subscribe(bool share, cupti::SubscriberCallback on_graph);
  void enable_graph_callbacks();
  void set_attributes();
  bool is_enabled(cupti::ActivityKind kind) const;
  void leave_out_noisy_calls();

  const cupti::Library* library_ = nullptr;
  void* handle_ = nullptr;
  bool is_shared_ = false;
  std::vector<cupti::ActivityKind> enabled_;
  const cupti::Library* kernels_left_on_ = nullptr;  // see disable
};

}  // namespace collector::capture
