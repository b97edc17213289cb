#include "capture/subscriber.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

namespace collector::capture {
namespace {

using cupti::ActivityKind;
using cupti::Failure;
using cupti::Feature;
using cupti::Result;

constexpr uint32_t kThreadIdSystem = 1;  // CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM: Linux thread ids, not pthread_self
constexpr uint32_t kMostSessions = 0x7fff'ffff;  // before their numbers begin again
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kHandOverPeriod = 500 * kMillisecond;  // what a journal lacks at most of work that has ended
constexpr int64_t kIdleWait = 100 * kMillisecond;        // CUPTI may deliver a little after a flush has returned

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void sleep_ns(int64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

uint32_t this_thread_id() {
  thread_local const auto id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

// API calls that frameworks make all the time and nobody reads; the list is the one Kineto leaves out, and the
// error queries.
constexpr const char* kNoisyCalls[] = {"cudaGetDevice",       "cudaSetDevice",        "cudaGetLastError",
                                       "cudaPeekAtLastError", "cuCtxGetCurrent",      "cuCtxGetDevice",
                                       "cuCtxSetCurrent",     "cuKernelGetAttribute", "cuDevicePrimaryCtxGetState"};

// The annotations this thread has open, as pushed to CUPTI.
thread_local std::vector<uint64_t> open_annotations;

}  // namespace

Subscriber& Subscriber::instance() {
  static auto* const instance = new Subscriber();
  return *instance;
}

Subscriber::Subscriber() { ::sem_init(&wake_, 0, 0); }

// --- Callbacks ---------------------------------------------------------------------------------------------------

void Subscriber::on_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) noexcept {
  Subscriber& self = instance();
  const BufferPools::Use pools(self.pools_);
  BufferPool& pool = pools.current();
  const uint32_t session = self.session_.load(std::memory_order_relaxed);
  *max_records = 0;
  const bool may_decline = self.may_decline_.load(std::memory_order_relaxed);
  const bool wanted = self.accepting_.load(std::memory_order_relaxed) && !cupti::forked_after_use();
  *buffer = wanted || !may_decline ? pool.acquire(session) : nullptr;
  *bytes = *buffer == nullptr ? 0 : pool.buffer_bytes();
  if (*buffer == nullptr && !may_decline) {
    // Before API 27 (CUDA 12.9) a null buffer can crash CUPTI (kineto#1534).
    *buffer = pool.acquire_scratch(session);
    *bytes = BufferPool::kScratchBytes;
  }
}

void Subscriber::on_buffer_completed(void*, uint32_t, uint8_t* data, size_t, size_t valid) noexcept {
  Subscriber& self = instance();
  if (data == nullptr || cupti::forked_after_use()) return;
  const BufferPools::Use pools(self.pools_);
  if (BufferPool* const pool = pools.of(data)) {
    pool->complete(data, valid);
  } else if (!self.foreign_buffers_.push({data, valid, 0})) {
    self.foreign_bytes_lost_.fetch_add(valid, std::memory_order_relaxed);
  }
  ::sem_post(&self.wake_);
}

// --- Decoding ----------------------------------------------------------------------------------------------------

void Subscriber::drain() {
  pools_.each([this](BufferPool& pool) {
    while (const auto buffer = pool.take_completed()) {
      decode(*buffer);
      pool.recycle(*buffer);
      pool.keep_ready();
    }
  });
  for (CompletedBuffer foreign{}; foreign_buffers_.pop(foreign);) decode(foreign);
}

void Subscriber::decode(const CompletedBuffer& buffer) {
  try {
    decoder_->decode(buffer.data, buffer.valid);
  } catch (const std::bad_alloc&) {
    out_of_memory_bytes_ += buffer.valid;
  }
  if (!journal_) return;
  try {
    journal_->append(store_, annotations_, counters());
  } catch (const std::bad_alloc&) {
    journal_->give_up("out of memory");
  }
}

void Subscriber::decode_loop() {
  ::pthread_setname_np(::pthread_self(), "collector");
  next_hand_over_ns_ = clock_ns(CLOCK_MONOTONIC) + kHandOverPeriod;
  while (decoding_.load(std::memory_order_acquire)) {
    wait_for_buffers();
    if (journal_) hand_over();
    drain();
  }
  drain();
  decode_cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void Subscriber::wait_for_buffers() {
  if (!journal_) {
    while (::sem_wait(&wake_) != 0) {
    }
    return;
  }
  const int64_t until = clock_ns(CLOCK_REALTIME) + next_hand_over_ns_ - clock_ns(CLOCK_MONOTONIC);
  const timespec time{until / 1'000'000'000, static_cast<long>(until % 1'000'000'000)};
  while (::sem_timedwait(&wake_, &time) != 0 && errno == EINTR) {
  }
}

void Subscriber::hand_over() {
  if (clock_ns(CLOCK_MONOTONIC) < next_hand_over_ns_) return;
  // CUPTI's own flush period would not do: it returns full buffers alone, which come by themselves. On 13.0.48, which
  // can crash in a flush, a journal has to do with those.
  const std::lock_guard<std::mutex> lock(flushing_);
  if (collecting_.load(std::memory_order_acquire) && library().has(Feature::kFlushingIsSafe)) {
    library().cupti().ActivityFlushAll(0);
  }
  next_hand_over_ns_ = clock_ns(CLOCK_MONOTONIC) + kHandOverPeriod;
}

void Subscriber::end_collecting() {
  collecting_.store(false, std::memory_order_release);
  const std::lock_guard<std::mutex> wait_for_hand_over(flushing_);
}

std::string Subscriber::journal_trouble() {
  if (cupti::forked_after_use()) return "";  // the journal is the parent's
  const std::lock_guard<std::mutex> lock(control_);
  return journal_ && !active() ? journal_->trouble() : "";
}

void Subscriber::remove_journal() {
  if (cupti::forked_after_use()) return;
  const std::lock_guard<std::mutex> lock(control_);
  if (journal_ && !active()) journal_->remove();
}

void Subscriber::start_decoding() {
  store_.clear();
  decoder_.emplace(library(), store_);
  out_of_memory_bytes_ = 0;
  decoding_.store(true, std::memory_order_release);
  // The program's signal handlers must not run on our thread.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  decode_thread_ = std::thread([this] { decode_loop(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Subscriber::stop_decoding() {
  decoding_.store(false, std::memory_order_release);
  ::sem_post(&wake_);
  if (decode_thread_.joinable()) decode_thread_.join();
  if (journal_) journal_->close();
}

// --- Start -------------------------------------------------------------------------------------------------------

void Subscriber::prepare_buffers(const StartOptions& options) {
  late_buffers_ = pools_.prepare(options.buffer_bytes, options.max_buffers);
  for (CompletedBuffer foreign{}; foreign_buffers_.pop(foreign);) {
  }
  foreign_bytes_lost_.store(0, std::memory_order_relaxed);
  session_.store(session_.load(std::memory_order_relaxed) % kMostSessions + 1, std::memory_order_relaxed);
}

void Subscriber::begin_journal(const std::string& path) {
  if (path.empty()) return;
  journal_ = std::make_unique<Journal>(path);
  std::map<std::string, std::string> texts{{"environment.cupti_path", library().portable_path()}};
  for (const cupti::Device& device : library().devices()) {
    texts.emplace("device." + std::to_string(device.ordinal), device.name);
  }
  journal_->begin(library(), texts,
                  {{"clock.cupti_start_ns", start_.cupti_ns},
                   {"clock.wall_start_ns", start_.wall_ns},
                   {"clock.uncertainty_ns", start_.uncertainty_ns},
                   {"environment.driver_version", library().driver_version()},
                   {"environment.cupti_api_version", library().api_version()},
                   {"environment.cuda_version", library().cuda_version()},
                   {"environment.simulated", library().simulated()},
                   {"environment.shared_subscription", shared_subscription_}});
}

std::optional<Failure> Subscriber::start(const StartOptions& options) {
  if (auto failure = cupti::begin_use()) return failure;  // a child may find control_ locked for ever
  const std::lock_guard<std::mutex> lock(control_);
  if (collecting_.load(std::memory_order_relaxed)) {
    return Failure{cupti::FailureKind::kAlreadyActive, "a session is already open in this process", "Close it first"};
  }
  cupti::Library::Opened opened = cupti::Library::open(options.paths);
  if (const Failure* failure = std::get_if<Failure>(&opened)) return *failure;
  auto& library = std::get<std::shared_ptr<const cupti::Library>>(opened);
  if (library_.load(std::memory_order_relaxed) != library.get()) {
    libraries_.push_back(library);
    library_.store(library.get(), std::memory_order_release);
  }

  std::optional<Failure> failure;
  journal_.reset();
  try {
    failure = start_tracing(options);
  } catch (const std::exception& error) {  // no memory for the buffers, no thread to be had
    failure = Failure{cupti::FailureKind::kCuptiCall, std::string("tracing could not start: ") + error.what(),
                      "Use fewer or smaller buffers (max_buffers, buffer_bytes)"};
  }
  if (failure) {
    roll_back();
    if (journal_) journal_->remove();
    return failure;
  }
  collecting_.store(true, std::memory_order_release);
  return std::nullopt;
}

std::optional<Failure> Subscriber::start_tracing(const StartOptions& options) {
  prepare_buffers(options);
  may_decline_.store(library().has(Feature::kDeclineBuffers), std::memory_order_relaxed);
  if (auto failure = subscribe(options.share_subscription)) return failure;
  set_attributes();
  // Callbacks must be there before the first kind is enabled; where one stayed on, so did they.
  if (kernels_left_on_ != &library()) {
    const Result result = library().cupti().ActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
    if (result != Result::kSuccess) {
      return cupti::describe("cuptiActivityRegisterCallbacks", result, library().text_of(result));
    }
  }
  const std::optional<Anchor> clocks = read_clocks();
  if (!clocks) return Failure{cupti::FailureKind::kCuptiCall, "CUPTI's clock cannot be read (cuptiGetTimestamp)", ""};
  start_ = *clocks;
  size_t before_us = 0;  // drops counted so far belong to nobody; reading resets them
  if (library().cupti().ActivityGetNumDroppedRecords != nullptr) {
    library().cupti().ActivityGetNumDroppedRecords(nullptr, 0, &before_us);
  }
  annotations_.begin(!options.journal.empty());
  begin_journal(options.journal);
  start_decoding();
  accepting_.store(true, std::memory_order_release);
  if (auto failure = enable(options.kinds)) return failure;
  leave_out_noisy_calls();
  return std::nullopt;
}

void Subscriber::roll_back() {
  const bool has_recorded = !enabled_.empty();
  disable_enabled();
  // What was recorded would otherwise come back in the next session, and with it names that nobody knows there.
  if (has_recorded) flush(1, clock_ns(CLOCK_MONOTONIC) + kIdleWait);
  accepting_.store(false, std::memory_order_release);
  unsubscribe();
  stop_decoding();
  store_.clear();
}

void Subscriber::set_attributes() {
  // All of these are improvements: a library that refuses one is used as it is.
  const auto set_flag = [this](cupti::Attribute attribute, uint8_t value) {
    if (library().cupti().ActivitySetAttribute == nullptr) return;
    size_t bytes = sizeof(value);
    library().cupti().ActivitySetAttribute(attribute, &bytes, &value);
  };
  // Our buffers come zeroed; without this CUPTI zeroes each one in the thread that asked for it.
  set_flag(cupti::Attribute::kZeroedOutActivityBuffer, 1);
  if (library().has(Feature::kPerThreadBuffers)) {
    // Written explicitly, as another client may have left it changed.
    set_flag(cupti::Attribute::kPerThreadActivityBuffer, library().has(Feature::kPerThreadBuffersByDefault) ? 1 : 0);
  }
  if (library().cupti().SetThreadIdType != nullptr) library().cupti().SetThreadIdType(kThreadIdSystem);
}

std::optional<Failure> Subscriber::subscribe(bool share) {
  shared_subscription_ = false;
  subscription_ = nullptr;
  const auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
  const Result result = library().cupti().Subscribe(&subscription_, nothing, nullptr);
  if (result == Result::kSuccess) return std::nullopt;
  subscription_ = nullptr;
  if (result == Result::kMultipleSubscribersNotSupported && share) {
    shared_subscription_ = true;
    return std::nullopt;
  }
  Failure failure = cupti::describe("cuptiSubscribe", result, library().text_of(result));
  if (result == Result::kMultipleSubscribersNotSupported && library().has(Feature::kHolderName)) {
    // The V2 call is refused too, and says by whom. It is made only to fail: a V2 subscription would forbid V1.
    std::array<char, 128> holder{};
    cupti::SubscriberParams params{};
    params.struct_size = library().cuda_version() >= 13020 ? 40 : 32;
    params.subscriber_name = "cupti-collector";
    params.holder_name = holder.data();
    params.holder_name_bytes = holder.size();
    void* refused = nullptr;
    const Result again = library().cupti().Subscribe_v2(&refused, nothing, nullptr, &params);
    if (again == Result::kSuccess) library().cupti().Unsubscribe(refused);
    if (holder[0] != '\0') failure.cause += "; it is \"" + std::string(holder.data()) + "\"";
  }
  return failure;
}

void Subscriber::unsubscribe() {
  if (subscription_ != nullptr) library().cupti().Unsubscribe(subscription_);
  subscription_ = nullptr;
}

std::optional<Failure> Subscriber::enable(const std::vector<ActivityKind>& kinds) {
  enabled_.clear();
  for (const ActivityKind kind : kinds) {
    if (kind == ActivityKind::kConcurrentKernel && kernels_left_on_ == &library()) continue;
    // What is made once was often made before the session.
    const auto dump = cupti::is_made_once(kind) ? library().cupti().ActivityEnableAndDump : nullptr;
    const Result result = dump != nullptr ? dump(kind) : library().cupti().ActivityEnable(kind);
    if (result == Result::kInvalidKind) continue;  // an older library meets a newer kind
    if (result != Result::kSuccess) return cupti::describe("cuptiActivityEnable", result, library().text_of(result));
    enabled_.push_back(kind);
  }
  return std::nullopt;
}

void Subscriber::disable_enabled() {
  for (auto kind = enabled_.rbegin(); kind != enabled_.rend(); ++kind) {
    if (*kind == ActivityKind::kConcurrentKernel && !library().has(Feature::kDisablingKernelsIsSafe)) {
      // 13.0.48 can deadlock here. There the kind stays on, and its buffers are declined between sessions.
      kernels_left_on_ = &library();
      continue;
    }
    library().cupti().ActivityDisable(*kind);
  }
  enabled_.clear();
}

void Subscriber::leave_out_noisy_calls() {
  const auto enabled = [this](ActivityKind kind) {
    return std::find(enabled_.begin(), enabled_.end(), kind) != enabled_.end();
  };
  // Enabling a kind resets its filter, so this comes after. The ids are found by name: names never lied so far.
  constexpr uint32_t kIds = 1024;
  const auto filter = [this](cupti::CallbackDomain domain, Result (*set)(uint32_t, uint8_t)) {
    for (uint32_t id = 1; id < kIds; ++id) {
      const std::string name = library().callback_name(domain, id);
      if (std::find(std::begin(kNoisyCalls), std::end(kNoisyCalls), name) != std::end(kNoisyCalls)) set(id, 0);
    }
  };
  if (library().has(Feature::kApiFilters)) {
    if (enabled(ActivityKind::kRuntime)) {
      filter(cupti::CallbackDomain::kRuntimeApi, library().cupti().ActivityEnableRuntimeApi);
    }
    if (enabled(ActivityKind::kDriver)) {
      filter(cupti::CallbackDomain::kDriverApi, library().cupti().ActivityEnableDriverApi);
    }
  }
  if (library().has(Feature::kSyncRecordFilter) && enabled(ActivityKind::kSynchronization)) {
    library().cupti().ActivityEnableAllSyncRecords(0);  // polling a busy event would flood the buffers
  }
}

// --- Stop --------------------------------------------------------------------------------------------------------

std::optional<Anchor> Subscriber::read_clocks() const {
  std::optional<Anchor> best;
  for (int attempt = 0; attempt < 5; ++attempt) {
    uint64_t cupti_ns = 0;
    const int64_t before = clock_ns(CLOCK_REALTIME);
    if (library().cupti().GetTimestamp(&cupti_ns) != Result::kSuccess) return std::nullopt;
    const int64_t after = clock_ns(CLOCK_REALTIME);
    const Anchor anchor{static_cast<int64_t>(cupti_ns), before + (after - before) / 2, (after - before) / 2 + 1};
    if (!best || anchor.uncertainty_ns < best->uncertainty_ns) best = anchor;
  }
  return best;
}

void Subscriber::synchronize_contexts() const {
  const cupti::DriverFunctions& driver = library().driver();
  if (driver.CtxSynchronize == nullptr) return;
  void* current = nullptr;
  if (driver.CtxGetCurrent != nullptr && driver.CtxGetCurrent(&current) == 0 && current != nullptr) {
    driver.CtxSynchronize();
  }
  int count = 0;
  // A driver library that wraps the real one may have only some of these.
  if (driver.DeviceGetCount == nullptr || driver.DeviceGet == nullptr || driver.DevicePrimaryCtxGetState == nullptr ||
      driver.DevicePrimaryCtxRetain == nullptr || driver.DevicePrimaryCtxRelease == nullptr ||
      driver.CtxPushCurrent == nullptr || driver.CtxPopCurrent == nullptr) {
    return;
  }
  if (driver.DeviceGetCount(&count) != 0) return;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    unsigned flags = 0;
    int is_active = 0;
    void* context = nullptr;
    if (driver.DeviceGet(&device, ordinal) != 0) continue;
    // Only contexts the program made: retaining an inactive one would create it.
    if (driver.DevicePrimaryCtxGetState(device, &flags, &is_active) != 0 || is_active == 0) continue;
    if (driver.DevicePrimaryCtxRetain(&context, device) != 0) continue;
    if (context != current && driver.CtxPushCurrent(context) == 0) {
      driver.CtxSynchronize();
      void* popped = nullptr;
      driver.CtxPopCurrent(&popped);
    }
    driver.DevicePrimaryCtxRelease(device);
  }
}

void Subscriber::flush(uint32_t forced, int64_t deadline_ns) {
  library().cupti().ActivityFlushAll(forced);
  const BufferPool* const pool = pools_.current();
  const uint32_t session = session_.load(std::memory_order_relaxed);
  uint64_t completed = pool->completed();
  int64_t quiet_since = clock_ns(CLOCK_MONOTONIC);
  for (int64_t pause = kMillisecond / 50; pool->outstanding(session) > 0; pause = std::min(2 * pause, kMillisecond)) {
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (pool->completed() != completed) {
      completed = pool->completed();
      quiet_since = now;
    }
    if (now > deadline_ns || now - quiet_since > kIdleWait)
      return;  // CUPTI keeps some: a running kernel, a quiet thread
    sleep_ns(pause);
  }
}

std::optional<Capture> Subscriber::stop(bool synchronize, int64_t timeout_ns) {
  if (!active()) return std::nullopt;
  const std::lock_guard<std::mutex> lock(control_);
  if (!active()) return std::nullopt;  // another thread has ended it meanwhile
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
  Capture capture{};
  capture.own_thread_id = this_thread_id();
  uint64_t now = 0;
  library().cupti().GetTimestamp(&now);
  capture.own_calls_from_ns = static_cast<int64_t>(now);
  if (synchronize) synchronize_contexts();
  end_collecting();
  capture.start = start_;
  capture.stop = read_clocks().value_or(start_);

  // Records of what has ended first; then, with nothing being recorded any more, all the rest.
  library().cupti().ActivityFlushAll(0);
  disable_enabled();
  flush(1, deadline);
  size_t dropped = 0;
  if (library().cupti().ActivityGetNumDroppedRecords != nullptr) {
    library().cupti().ActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  }
  accepting_.store(false, std::memory_order_release);
  unsubscribe();
  stop_decoding();
  store_.sort();

  capture.library = &library();
  capture.store = &store_;
  capture.annotations = annotations_.take(capture.stop.cupti_ns, capture.annotation_paths);
  capture.devices = library().devices();
  capture.shared_subscription = shared_subscription_;
  capture.counters = counters();
  capture.counters["buffers_outstanding"] = pools_.current()->outstanding(session_.load(std::memory_order_relaxed));
  capture.counters["records_dropped"] = static_cast<int64_t>(dropped);
  capture.counters["decode_cpu_ns"] = decode_cpu_ns_;
  pools_.release_memory();
  return capture;
}

std::map<std::string, int64_t> Subscriber::counters() const {
  const BufferPool* const pool = pools_.current();
  const DecodeCounts& decoded = decoder_->counts();
  return {
      {"buffers_requested", static_cast<int64_t>(pool->requested())},
      {"buffers_completed", static_cast<int64_t>(pool->completed())},
      {"buffers_declined", static_cast<int64_t>(pool->declined())},
      {"bytes_completed", static_cast<int64_t>(pool->completed_bytes())},
      {"bytes_mapped", static_cast<int64_t>(pool->mapped_bytes())},
      {"bytes_unparsed", static_cast<int64_t>(decoded.bytes_unparsed + out_of_memory_bytes_)},
      {"bytes_discarded", static_cast<int64_t>(pool->discarded_bytes() + foreign_bytes_lost_.load())},
      {"buffers_from_earlier_sessions", static_cast<int64_t>(late_buffers_)},
      {"records_decoded", static_cast<int64_t>(decoded.records)},
      {"records_unknown_kind", static_cast<int64_t>(decoded.unknown_kinds)},
      {"callback_calls", static_cast<int64_t>(pool->requested() + pool->completed())},
  };
}

void Subscriber::abort() {
  if (!active()) return;
  const std::unique_lock<std::mutex> lock(control_, std::try_to_lock);
  if (!lock.owns_lock() || !active()) return;
  end_collecting();
  roll_back();
}

// --- Annotations -------------------------------------------------------------------------------------------------

void Subscriber::note_details(std::string_view details) {
  if (active()) annotations_.note_details(details);
}

void Subscriber::push_annotation(std::string_view path, uint32_t details_id) {
  if (!active()) {
    open_annotations.push_back(0);
    return;
  }
  uint64_t now = 0;
  library().cupti().GetTimestamp(&now);
  const uint64_t id = annotations_.open(path, static_cast<int64_t>(now), this_thread_id(),
                                        static_cast<uint16_t>(open_annotations.size()), details_id);
  const auto push = library().cupti().ActivityPushExternalCorrelationId;
  const bool can_pop = library().cupti().ActivityPopExternalCorrelationId != nullptr;
  const bool pushed =
      push != nullptr && can_pop && push(cupti::ExternalCorrelationKind::kCustom2, id) == Result::kSuccess;
  open_annotations.push_back(pushed ? id : 0);
}

void Subscriber::pop_annotation() {
  if (open_annotations.empty()) return;
  const uint64_t id = open_annotations.back();
  open_annotations.pop_back();
  if (id == 0 || cupti::forked_after_use()) return;
  // Also after the session has ended: an id left on CUPTI's stack would be put on a later session's launches.
  uint64_t popped = 0;
  library().cupti().ActivityPopExternalCorrelationId(cupti::ExternalCorrelationKind::kCustom2, &popped);
  if (!active()) return;
  uint64_t now = 0;
  library().cupti().GetTimestamp(&now);
  annotations_.close(id, static_cast<int64_t>(now));
}

}  // namespace collector::capture
