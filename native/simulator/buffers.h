// Activity buffers: requested from the client, filled with records, returned.
//
// Lock order: RecordBuffer::mutex -> delivering_ -> queue_. As in the real library, client callbacks run while one of
// the first two is held. A callback that calls back into CUPTI is counted and rejected before it takes any lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "simulator/control.h"
#include "simulator/faults.h"
#include "simulator/latency.h"
#include "simulator/misuse.h"
#include "threads/mutex.h"

namespace collector::simulator {

using RequestCallback = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CompleteCallback = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
// Those of a subscriber (V2), with a description of the buffer.
using SubscriberRequestCallback = void (*)(uint8_t** buffer, size_t* size, size_t* max_records, void* description);
using SubscriberCompleteCallback = void (*)(uint8_t* buffer, size_t size, size_t valid, void* description);

// Whether this thread is inside a client's buffer callback.
bool in_client_callback();

// Marks the calling thread as being inside a client callback, measures its time, and notifies the allocation counter of
// a test, if the process has one (functions allocation_counter_enter and allocation_counter_leave).
class ClientCallback {
 public:
  explicit ClientCallback(Latency& latency);
  ~ClientCallback();
  ClientCallback(const ClientCallback&) = delete;
  ClientCallback& operator=(const ClientCallback&) = delete;

 private:
  Latency& latency_;
  uint64_t started_ns_;
};

// The buffer that one thread fills, or all threads together.
struct RecordBuffer {
  threads::Mutex mutex;
  uint8_t* data GUARDED_BY(mutex) = nullptr;
  size_t size GUARDED_BY(mutex) = 0;
  size_t used GUARDED_BY(mutex) = 0;
  size_t records GUARDED_BY(mutex) = 0;
  size_t max_records GUARDED_BY(mutex) = 0;
  size_t last_record_bytes GUARDED_BY(mutex) = 0;

  bool fits(size_t bytes) const REQUIRES(mutex) {
    return used + bytes <= size && (max_records == 0 || records < max_records);
  }
};

class Buffers {
 public:
  Buffers(Faults& faults, MisuseCounters& misuses, bool deliver_from_caller, bool null_is_fatal)
      : faults_(faults), misuses_(misuses), deliver_from_caller_(deliver_from_caller), null_is_fatal_(null_is_fatal) {}

  void set_callbacks(RequestCallback on_request, CompleteCallback on_complete);
  void set_callbacks(SubscriberRequestCallback on_request, SubscriberCompleteCallback on_complete);
  void forget_callbacks();
  bool has_callbacks() const { return request_.load() != nullptr || subscriber_request_.load() != nullptr; }

  // Writes one record. Returns false if the record was dropped, which is also counted.
  bool append(RecordBuffer& buffer, const void* record, size_t bytes);
  void drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }
  // Delivers this record in a buffer of its own, after all other buffers of the next flush.
  void append_late(const void* record, size_t bytes);

  // Closes the contents of `buffers` and returns all closed buffers. `empty_too`: also buffers without a record.
  // `requests_next`: requests a buffer in the place of each.
  void flush(const std::vector<RecordBuffer*>& buffers, bool empty_too, bool requests_next = false);
  // Returns the buffers that are already closed; the worker calls this.
  void deliver_closed();
  // Returns the buffers delayed by a slow_completion fault whose delay is over.
  void deliver_slow();
  // Returns the buffers withheld by a kept_buffer fault.
  void return_kept();
  bool idle();

  uint64_t take_dropped() { return dropped_.exchange(0, std::memory_order_acq_rel); }
  std::atomic<bool> client_zeroes{false};

  struct Counts {
    uint64_t requested, completed, declined, outstanding, bytes, records;
  };
  Counts counts();
  const Latency& request_latency() const { return request_latency_; }
  const Latency& complete_latency() const { return complete_latency_; }

  // Called when the worker has something to deliver.
  void (*wake_worker)(void*) = nullptr;
  void* wake_argument = nullptr;

 private:
  struct Closed {
    uint8_t* data;
    size_t size;
    size_t valid;
  };
  struct Slow {
    Closed closed;
    int64_t due_ns;
  };

  bool request(RecordBuffer& buffer) REQUIRES(buffer.mutex);
  enum class Why { kFull, kFlushed };
  void close(RecordBuffer& buffer, Why why) REQUIRES(buffer.mutex);
  void hand_back(const Closed& closed) REQUIRES(delivering_);

  Faults& faults_;
  MisuseCounters& misuses_;
  const bool deliver_from_caller_;
  const bool null_is_fatal_;
  std::atomic<RequestCallback> request_{nullptr};
  std::atomic<CompleteCallback> complete_{nullptr};
  std::atomic<SubscriberRequestCallback> subscriber_request_{nullptr};
  std::atomic<SubscriberCompleteCallback> subscriber_complete_{nullptr};

  threads::Mutex delivering_;
  threads::Mutex queue_;
  std::deque<Closed> closed_ GUARDED_BY(queue_);
  std::deque<Closed> overtaken_ GUARDED_BY(queue_);
  std::vector<Slow> slow_ GUARDED_BY(queue_);
  std::deque<Closed> kept_ GUARDED_BY(queue_);
  std::vector<std::vector<uint8_t>> late_ GUARDED_BY(queue_);
  std::unordered_set<uint8_t*> held_ GUARDED_BY(queue_);

  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> requested_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> declined_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> records_{0};
  Latency request_latency_;
  Latency complete_latency_;
};

}  // namespace collector::simulator
