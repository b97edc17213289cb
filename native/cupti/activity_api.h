// CUPTI's Activity API in the form that this process may use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cupti/abi.h"
#include "cupti/cupti_functions.h"

namespace collector::cupti {

struct BufferCallbacks {
  BufferRequested requested;
  BufferCompleted completed;
  // For a subscriber among several.
  BufferRequestedV2 requested_v2;
  BufferCompletedV2 completed_v2;
};

// The functions of the Activity API have two forms: one for the whole process (V1), and one for each of several
// subscribers (V2, whole since 13.3). CUPTI refuses one form with CUPTI_ERROR_NOT_COMPATIBLE as soon as a client of the
// process has used the other one. XLA (xla#46077) and PyTorch's CUPTI monitor (pytorch#186439) use V2.
//
// V1 is used until another client's V2 excludes it: every version and every driver has it. After `join` only V2 is
// used, for the rest of the process. Any thread may call any function; calls of `join` must not overlap.
class ActivityApi {
 public:
  explicit ActivityApi(const CuptiFunctions& functions) : cupti_(functions) {}

  // Whether the library has all functions of V2 that a session needs.
  bool has_v2() const noexcept;

  // Subscribes beside the other subscribers of this process. The subscription is never given back, because threads may
  // push and pop annotations at any time, and it excludes no client that the others do not exclude already. `holder`
  // becomes the name of the first subscriber, or of the one that allows no other.
  Result join(SubscriberCallback callback, std::string& holder);

  // The name of the client that holds the only subscription, or "". The library must be able to name it; `cuda` is its
  // version.
  std::string holder(SubscriberCallback callback, int cuda) const;

  // Our subscription among several; null while V1 is used.
  void* subscriber() const noexcept { return subscriber_.load(std::memory_order_acquire); }

  // The name of the first of the several subscribers; empty while V1 is used.
  std::string first_subscriber() const { return subscriber() != nullptr ? first_subscriber_ : ""; }

  // Any thread may call this and the two functions about external ids at any time: they fail while the process ends.
  Result timestamp(uint64_t* time) const noexcept;
  Result register_callbacks(const BufferCallbacks& callbacks) const noexcept;
  Result enable(ActivityKind kind) const noexcept;
  // Has what exists already recorded, too, where the library can.
  Result enable_and_dump(ActivityKind kind) const noexcept;
  Result disable(ActivityKind kind) const noexcept;
  Result set_attribute(Attribute attribute, uint8_t value) const noexcept;
  Result use_system_thread_ids() const noexcept;
  Result leave_out_call(CallbackDomain domain, uint32_t callback_id) const noexcept;
  Result leave_out_unfinished_waits() const noexcept;
  // Whether another subscriber has chosen, for all, that graphs are recorded as one activity each.
  bool records_whole_graphs() const noexcept;
  Result next_record(uint8_t* buffer, size_t num_bytes, uint8_t** record) const noexcept;
  // The number of records that were dropped since the last call. Reading resets it.
  size_t take_num_dropped() const noexcept;

  bool has_external_correlation() const noexcept;
  Result push_external_id(uint64_t id) const noexcept;
  Result pop_external_id(uint64_t* id) const noexcept;

 private:
  Result subscribe_v2(SubscriberParams& params, SubscriberCallback callback, void** subscriber,
                      std::string& holder) const;

  const CuptiFunctions& cupti_;
  std::atomic<void*> subscriber_{nullptr};
  std::string first_subscriber_;  // written once, before `subscriber_`
};

}  // namespace collector::cupti
