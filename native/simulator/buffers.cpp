#include "simulator/buffers.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace collector::simulator {
namespace {

thread_local int callback_depth = 0;

// The description of a buffer that a subscriber gets: the members are those of CUpti_BufferCallbackCompleteInfo. That
// of a request has only the first.
struct Description {
  size_t struct_bytes = sizeof(Description);
  uint64_t thread_id = 0;
  void** layouts = nullptr;  // of records whose fields the subscriber has chosen
  size_t num_layouts = 0;
};

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

using CounterHook = void (*)();

CounterHook allocation_hook(const char* name) { return reinterpret_cast<CounterHook>(dlsym(RTLD_DEFAULT, name)); }

bool all_zero(const uint8_t* bytes, size_t count) {
  uint64_t seen = 0;
  for (size_t i = 0; i + 8 <= count; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    seen |= word;
  }
  return seen == 0;
}

}  // namespace

bool in_client_callback() { return callback_depth > 0; }

ClientCallback::ClientCallback(Latency& latency) : latency_(latency) {
  static const CounterHook enter = allocation_hook("allocation_counter_enter");
  ++callback_depth;
  if (enter != nullptr) enter();
  started_ns_ = static_cast<uint64_t>(steady_ns());
}

ClientCallback::~ClientCallback() {
  static const CounterHook leave = allocation_hook("allocation_counter_leave");
  latency_.add(static_cast<uint64_t>(steady_ns()) - started_ns_);
  if (leave != nullptr) leave();
  --callback_depth;
}

void Buffers::set_callbacks(RequestCallback on_request, CompleteCallback on_complete) {
  complete_.store(on_complete, std::memory_order_release);
  request_.store(on_request, std::memory_order_release);
}

void Buffers::set_callbacks(SubscriberRequestCallback on_request, SubscriberCompleteCallback on_complete) {
  subscriber_complete_.store(on_complete, std::memory_order_release);
  subscriber_request_.store(on_request, std::memory_order_release);
}

void Buffers::forget_callbacks() {
  set_callbacks(RequestCallback{}, CompleteCallback{});
  set_callbacks(SubscriberRequestCallback{}, SubscriberCompleteCallback{});
}

bool Buffers::append(RecordBuffer& buffer, const void* record, size_t bytes) {
  const threads::MutexLock lock(buffer.mutex);
  if (buffer.data != nullptr && !buffer.fits(bytes)) close(buffer, Why::kFull);
  if (buffer.data == nullptr && !request(buffer)) {
    drop();
    return false;
  }
  if (!buffer.fits(bytes)) {
    misuses_.count(Misuse::kBufferTooSmall);
    drop();
    return false;
  }
  uint8_t* place = buffer.data + buffer.used;
  if (client_zeroes.load(std::memory_order_relaxed) && !all_zero(place, bytes)) {
    misuses_.count(Misuse::kBufferNotZeroed);
  }
  std::memcpy(place, record, bytes);
  buffer.used += bytes;
  buffer.last_record_bytes = bytes;
  ++buffer.records;
  records_.fetch_add(1, std::memory_order_relaxed);
  if (2 * buffer.used >= buffer.size && faults_.strikes(Fault::kHalfFullBuffers)) close(buffer, Why::kFull);
  return true;
}

void Buffers::append_late(const void* record, size_t bytes) {
  const auto* first = static_cast<const uint8_t*>(record);
  const threads::MutexLock lock(queue_);
  late_.emplace_back(first, first + bytes);
}

bool Buffers::request(RecordBuffer& buffer) {
  const RequestCallback callback = request_.load(std::memory_order_acquire);
  const SubscriberRequestCallback of_subscriber = subscriber_request_.load(std::memory_order_acquire);
  if (callback == nullptr && of_subscriber == nullptr) return false;
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t max_records = 0;
  {
    const ClientCallback inside(request_latency_);
    Description description{};
    if (of_subscriber != nullptr) {
      of_subscriber(&data, &size, &max_records, &description);
    } else {
      callback(&data, &size, &max_records);
    }
  }
  requested_.fetch_add(1, std::memory_order_relaxed);
  if (data == nullptr || size == 0) {
    declined_.fetch_add(1, std::memory_order_relaxed);
    if (null_is_fatal_) misuses_.count(Misuse::kBufferDeclined);
    return false;
  }
  if (reinterpret_cast<uintptr_t>(data) % 8 != 0) misuses_.count(Misuse::kBufferMisaligned);
  {
    const threads::MutexLock lock(queue_);
    if (!held_.insert(data).second) misuses_.count(Misuse::kBufferInUse);
  }
  if (!client_zeroes.load(std::memory_order_relaxed)) std::memset(data, 0, size);
  buffer.data = data;
  buffer.size = size;
  buffer.used = 0;
  buffer.records = 0;
  buffer.max_records = max_records;
  buffer.last_record_bytes = 0;
  return true;
}

void Buffers::close(RecordBuffer& buffer, Why why) {
  Closed closed{buffer.data, buffer.size, buffer.used};
  int64_t cut = 0;
  if (buffer.records > 0 && faults_.strikes(Fault::kCutBuffer, &cut)) {
    closed.valid -= static_cast<size_t>(cut) < buffer.last_record_bytes ? static_cast<size_t>(cut) : 0;
  }
  buffer.data = nullptr;
  buffer.size = buffer.used = buffer.records = 0;
  if (faults_.strikes(Fault::kWithheldBuffer)) return;
  if (faults_.strikes(Fault::kKeptBuffer)) {
    const threads::MutexLock lock(queue_);
    kept_.push_back(closed);
    return;
  }
  int64_t delay_ms = 0;
  const bool slow = why == Why::kFlushed && faults_.strikes(Fault::kSlowCompletion, &delay_ms);
  const bool overtaken = faults_.strikes(Fault::kOutOfOrderBuffers);
  {
    const threads::MutexLock lock(queue_);
    if (slow) {
      slow_.push_back({closed, steady_ns() + delay_ms * 1'000'000});
      return;
    }
    if (overtaken) {
      overtaken_.push_back(closed);
      return;
    }
    closed_.push_back(closed);
    for (; !overtaken_.empty(); overtaken_.pop_front()) closed_.push_back(overtaken_.front());
  }
  if (deliver_from_caller_) {
    deliver_closed();
  } else if (wake_worker != nullptr) {
    wake_worker(wake_argument);
  }
}

void Buffers::deliver_closed() {
  const threads::MutexLock delivering(delivering_);
  for (;;) {
    Closed closed{};
    {
      const threads::MutexLock lock(queue_);
      if (closed_.empty()) return;
      closed = closed_.front();
      closed_.pop_front();
    }
    hand_back(closed);
  }
}

void Buffers::hand_back(const Closed& closed) {
  {
    const threads::MutexLock lock(queue_);
    held_.erase(closed.data);
  }
  completed_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(closed.valid, std::memory_order_relaxed);
  const CompleteCallback callback = complete_.load(std::memory_order_acquire);
  const SubscriberCompleteCallback of_subscriber = subscriber_complete_.load(std::memory_order_acquire);
  const ClientCallback inside(complete_latency_);
  if (of_subscriber != nullptr) {
    Description description{};
    description.thread_id = static_cast<uint64_t>(::syscall(SYS_gettid));
    of_subscriber(closed.data, closed.size, closed.valid, &description);
  } else if (callback != nullptr) {
    callback(nullptr, 0, closed.data, closed.size, closed.valid);
  }
}

void Buffers::flush(const std::vector<RecordBuffer*>& buffers, bool empty_too, bool requests_next) {
  for (RecordBuffer* buffer : buffers) {
    const threads::MutexLock lock(buffer->mutex);
    if (buffer->data == nullptr || (buffer->used == 0 && !empty_too)) continue;
    close(*buffer, Why::kFlushed);
    if (requests_next) request(*buffer);
  }
  std::vector<std::vector<uint8_t>> late;
  {
    const threads::MutexLock lock(queue_);
    late.swap(late_);
  }
  if (!late.empty()) {
    RecordBuffer last;
    for (const auto& record : late) append(last, record.data(), record.size());
    const threads::MutexLock lock(last.mutex);
    if (last.data != nullptr) close(last, Why::kFlushed);
  }
  {
    const threads::MutexLock lock(queue_);
    for (; !overtaken_.empty(); overtaken_.pop_front()) closed_.push_back(overtaken_.front());
  }
  deliver_closed();
}

void Buffers::deliver_slow() {
  const int64_t now = steady_ns();
  {
    const threads::MutexLock lock(queue_);
    for (auto slow = slow_.begin(); slow != slow_.end();) {
      if (slow->due_ns > now) {
        ++slow;
        continue;
      }
      closed_.push_back(slow->closed);
      slow = slow_.erase(slow);
    }
  }
  deliver_closed();
}

void Buffers::return_kept() {
  {
    const threads::MutexLock lock(queue_);
    for (; !kept_.empty(); kept_.pop_front()) closed_.push_back(kept_.front());
  }
  deliver_closed();
}

bool Buffers::idle() {
  const threads::MutexLock delivering(delivering_);
  const threads::MutexLock lock(queue_);
  return closed_.empty() && slow_.empty();
}

Buffers::Counts Buffers::counts() {
  const threads::MutexLock lock(queue_);
  return {requested_.load(), completed_.load(), declined_.load(), held_.size(), bytes_.load(), records_.load()};
}

}  // namespace collector::simulator
