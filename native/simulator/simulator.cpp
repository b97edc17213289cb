#include "simulator/simulator.h"

#include <pthread.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace collector::simulator {
namespace {

std::atomic<Simulator*> current_simulator{nullptr};
threads::Mutex open_mutex;

int64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

SimConfig with_start(SimConfig config) {
  if (config.start_ns < 0) config.start_ns = realtime_ns();
  return config;
}

uint64_t next_generation() {
  static std::atomic<uint64_t> generations{0};
  return ++generations;
}

// All simulators that were ever current; reachable until the process ends.
std::vector<std::unique_ptr<Simulator>>& opened() REQUIRES(open_mutex) {
  static auto* all = new std::vector<std::unique_ptr<Simulator>>;
  return *all;
}

int environment_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

std::atomic<int> Simulator::forks{0};

Simulator::Simulator(const SimConfig& asked, Release played)
    : config(with_start(asked)),
      release(played),
      driver_version(asked.driver_version != 0 ? asked.driver_version : asked.cuda),
      device_name(asked.device_name != nullptr ? asked.device_name : "Simulated GPU"),
      clock(config.start_ns, config.follow_real_time != 0),
      misuses(config.abort_on_fatal != 0),
      buffers(faults, misuses, config.deliver_from_caller != 0, played.api_version < 27),
      generation_(next_generation()),
      per_thread_buffers_(played.cuda >= 13000),
      boot_ns_(config.start_ns - 3'600'000'000'000) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  for (uint32_t device = 0; device < static_cast<uint32_t>(config.devices); ++device) create_context(device);
  using cupti::Attribute;
  attributes_[static_cast<size_t>(Attribute::kDeviceBufferPoolLimit)] = 250;
  attributes_[static_cast<size_t>(Attribute::kDeviceBufferPreAllocateValue)] = 3;
  attributes_[static_cast<size_t>(Attribute::kMemAllocationTypeHostPinned)] = played.cuda < 13000 ? 1 : 0;
  attributes_[static_cast<size_t>(Attribute::kPerThreadActivityBuffer)] = played.cuda >= 13000 ? 1 : 0;
  attributes_[0] = 3'200'000;
  for (uint32_t kind = 0; kind <= kLastKind; ++kind) strides_[kind] = stride_of(kind, release.cuda);
  buffers.wake_worker = [](void* self) { static_cast<Simulator*>(self)->wake(); };
  buffers.wake_argument = this;
  worker_ = std::thread([this] { work(); });
}

Simulator& Simulator::current() {
  Simulator* simulator = current_simulator.load(std::memory_order_acquire);
  if (simulator != nullptr) return *simulator;
  const threads::MutexLock lock(open_mutex);
  simulator = current_simulator.load(std::memory_order_acquire);
  if (simulator != nullptr) return *simulator;
  SimConfig config{};
  config.cuda = environment_number("COLLECTOR_SIMULATED_CUDA", 13000);
  config.driver_version = environment_number("COLLECTOR_SIMULATED_DRIVER", 0);
  config.devices = environment_number("COLLECTOR_SIMULATED_DEVICES", 1);
  config.start_ns = -1;
  config.api_call_ns = 4000;
  config.launch_latency_ns = 2000;
  config.gap_ns = 500;
  Release release = release_of(config.cuda, 0);
  if (release.cuda == 0) release = release_of(config.cuda = 13000, 0);
  opened().push_back(std::make_unique<Simulator>(config, release));
  current_simulator.store(opened().back().get(), std::memory_order_release);
  return *opened().back();
}

void Simulator::open(const SimConfig& config, Release release) {
  auto simulator = std::make_unique<Simulator>(config, release);
  const threads::MutexLock lock(open_mutex);
  Simulator* before = current_simulator.exchange(simulator.get(), std::memory_order_acq_rel);
  if (before != nullptr) before->close();
  opened().push_back(std::move(simulator));
}

void Simulator::close() {
  if (closed_.exchange(true)) return;
  if (is_inherited()) {
    worker_.detach();  // a forked child has no worker to wait for
  } else {
    wake();
    worker_.join();
  }
  buffers.forget_callbacks();
  subscribers.silence();
}

ThreadState& Simulator::thread() {
  thread_local uint64_t generation = 0;
  thread_local ThreadState* state = nullptr;
  if (generation != generation_) {
    auto fresh = std::make_unique<ThreadState>();
    fresh->system_thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
    fresh->posix_thread_id = static_cast<uint32_t>(pthread_self());
    const threads::MutexLock lock(threads_mutex_);
    threads_.push_back(std::move(fresh));
    state = threads_.back().get();
    generation = generation_;
  }
  return *state;
}

std::vector<RecordBuffer*> Simulator::all_buffers() {
  const threads::MutexLock lock(threads_mutex_);
  std::vector<RecordBuffer*> all{&shared_buffer_};
  for (const auto& thread : threads_) all.push_back(&thread->buffer);
  return all;
}

std::vector<RecordBuffer*> Simulator::complete_buffers() {
  if (context_error.load() != 0) return {};
  std::vector<RecordBuffer*> complete = all_buffers();
  const threads::MutexLock lock(device_mutex_);
  complete.erase(
      std::remove_if(complete.begin(), complete.end(),
                     [this](RecordBuffer* buffer) REQUIRES(device_mutex_) { return unfinished_.count(buffer) != 0; }),
      complete.end());
  return complete;
}

void Simulator::await(const SimActivity& activity, RecordBuffer& buffer) {
  pending_.push({activity, &buffer, sequence_++});
  ++unfinished_[&buffer];
}

// Writes the records of all finished work; if `forced`, also those of unfinished work: without times, also where it has
// begun, as 13.0.85 does.
void Simulator::complete_due(bool forced) {
  const threads::MutexLock completing(completing_);
  std::vector<Work> due;
  {
    const threads::MutexLock lock(device_mutex_);
    const int64_t now = clock.now();
    const bool has_failed = context_error.load() != 0;
    while (!pending_.empty() && (forced || (!has_failed && pending_.top().activity.end_ns <= now))) {
      due.push_back(pending_.top());
      pending_.pop();
      const auto unfinished = unfinished_.find(due.back().buffer);
      if (--unfinished->second == 0) unfinished_.erase(unfinished);
      SimActivity& activity = due.back().activity;
      if (has_failed || activity.end_ns > now) activity.start_ns = activity.end_ns = 0;
    }
  }
  for (const Work& work : due) {
    const bool is_lost = faults.armed(Fault::kLostWhenDisabled) && !recorded(work.activity);
    if (!is_lost || !faults.strikes(Fault::kLostWhenDisabled)) write_activity(work.activity, *work.buffer);
  }
}

void Simulator::fail(uint32_t code) {
  const threads::MutexLock completing(completing_);
  context_error.store(code);
  for (RecordBuffer* buffer : all_buffers()) forget_times(*buffer);
}

void Simulator::forget_times(RecordBuffer& buffer) {
  const threads::MutexLock lock(buffer.mutex);
  uint32_t kind = 0;
  for (size_t at = 0; at + sizeof kind <= buffer.used; at += strides_[kind]) {
    std::memcpy(&kind, buffer.data + at, sizeof kind);
    if (kind > kLastKind || strides_[kind] == 0) return;  // the faults that write such a record
    size_t times = 0;
    switch (static_cast<cupti::ActivityKind>(kind)) {
      case cupti::ActivityKind::kKernel:
      case cupti::ActivityKind::kConcurrentKernel:
        times = offsetof(cupti::Kernel, start);
        break;
      case cupti::ActivityKind::kMemcpy:
        times = offsetof(cupti::Memcpy, start);
        break;
      case cupti::ActivityKind::kMemcpy2:
        times = offsetof(cupti::MemcpyPtoP, start);
        break;
      case cupti::ActivityKind::kMemset:
        times = offsetof(cupti::Memset, start);
        break;
      default:
        continue;
    }
    std::memset(buffer.data + at + times, 0, 2 * sizeof(uint64_t));
  }
}

void Simulator::wake() {
  {
    const threads::MutexLock lock(worker_mutex_);
    worker_due_ = true;
  }
  worker_wakes_.notify_one();
}

void Simulator::work() {
  worker_thread_id_.store(static_cast<uint32_t>(::syscall(SYS_gettid)), std::memory_order_relaxed);
  using Steady = std::chrono::steady_clock;
  auto next_flush = Steady::now();
  while (alive()) {
    {
      const threads::MutexLock lock(worker_mutex_);
      if (!worker_due_) worker_wakes_.wait_for(worker_mutex_, std::chrono::milliseconds(5));
      worker_due_ = false;
    }
    if (!alive()) return;
    complete_due(false);
    buffers.deliver_slow();
    const uint32_t period = flush_period_ms_.load();
    if (period != 0 && Steady::now() >= next_flush) {
      next_flush = Steady::now() + std::chrono::milliseconds(period);
      buffers.flush(complete_buffers(), false);
    }
  }
}

bool Simulator::wait_until_idle(int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!buffers.idle()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace collector::simulator
