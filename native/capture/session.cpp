#include "capture/session.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>

#include "capture/capture_ranges.h"
#include "capture/clocks.h"
#include "threads/not_cancelled.h"
#include "threads/patient_lock.h"

namespace collector::capture {
namespace {

using cupti::Failure;
using cupti::Feature;
using cupti::Result;

constexpr uint32_t kMostSessions = 0x7fff'ffff;  // session numbers wrap around after this many
// The numbers of a journal that has only the work of ranges, besides the bounds of each.
constexpr const char* kRangesSeen = "capture_ranges_seen";
constexpr const char* kRangesRecorded = "capture_ranges_recorded";
constexpr int64_t kLongestSettling = 5'000 * kMillisecond;  // of the work of a range that has ended
constexpr int64_t kIdleWait = 100 * kMillisecond;        // CUPTI may deliver buffers shortly after a flush has returned
constexpr int64_t kDeliveryWait = 500 * kMillisecond;    // the same of finished work: its buffers come, if late
constexpr int64_t kUnfinishedWait = 500 * kMillisecond;  // for work that is running when the journal is cut
constexpr int64_t kLongestPause = 5 * kMillisecond;      // between two flushes, of which each fills a buffer
// Of a session with a journal. CUPTI keeps a buffer as long as a record in it is unfinished, so that of a GPU that
// always has work only full buffers come back: the larger they are, the more is missing in the journal of a killed
// program.
constexpr size_t kJournaledBufferBytes = size_t{256} << 10;

// The kinds that are disabled as soon as a range ends. The others stay enabled until its work has finished.
std::vector<cupti::ActivityKind> call_kinds() { return {cupti::ActivityKind::kRuntime, cupti::ActivityKind::kDriver}; }

void sleep_ns(int64_t ns) {
  const timespec time = timespec_of(ns);
  ::nanosleep(&time, nullptr);
}

uint32_t this_thread_id() noexcept {
  thread_local const auto id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

// The session for the callbacks, which must not create one.
std::atomic<Session*> called_back{nullptr};

thread_local ThreadAnnotations this_thread;

// Whether this_thread has been destroyed: destructors and exit handlers that run later may still open and close ranges.
thread_local bool this_thread_has_ended = false;

// this_thread as soon as it is used, so that further uses are one access to the thread's memory; null after its end.
thread_local ThreadAnnotations* used_this_thread = nullptr;

// Null: the thread has ended.
ThreadAnnotations* annotations_of_this_thread() {
  if (used_this_thread == nullptr && !this_thread_has_ended) used_this_thread = &this_thread;
  return used_this_thread;
}

// No value: no copies are recorded, nor are those between GPUs missed then.
std::optional<bool> records_peer_copies(const std::vector<cupti::ActivityKind>& kinds) {
  const auto has = [&](cupti::ActivityKind kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  if (!has(cupti::ActivityKind::kMemcpy)) return std::nullopt;
  return has(cupti::ActivityKind::kMemcpy2);
}

void add_names(const std::vector<cupti::Device>& devices, std::map<std::string, std::string>& texts) {
  for (const cupti::Device& device : devices) texts["device." + std::to_string(device.ordinal)] = device.name;
}

}  // namespace

ThreadAnnotations::ThreadAnnotations() noexcept : thread_id(this_thread_id()) {}

ThreadAnnotations::~ThreadAnnotations() {
  this_thread_has_ended = true;
  used_this_thread = nullptr;
  Session* const latest = called_back.load(std::memory_order_acquire);
  if (latest != nullptr && open.size() > 0) latest->leave_thread(open);
}

Session& Session::instance() {
  static auto* const instance = new Session();
  return *instance;
}

// --- Callbacks ---------------------------------------------------------------------------------------------------

void Session::on_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) noexcept {
  Session& self = *called_back.load(std::memory_order_acquire);
  const CallbackTime time(self.budget_);
  const BufferPools::Use pools(self.pools_);
  BufferPool& pool = pools.current();
  const uint32_t session = self.number_.load(std::memory_order_relaxed);
  *max_records = 0;
  const bool may_decline = self.may_decline_.load(std::memory_order_relaxed);
  const bool wanted = self.accepting_.load(std::memory_order_relaxed) && !cupti::out_of_use();
  *buffer = wanted || !may_decline ? pool.acquire(session) : nullptr;
  *bytes = *buffer == nullptr ? 0 : pool.buffer_bytes();
  if (*buffer == nullptr && !may_decline) {
    // Before API 27 (CUDA 12.9) a null buffer can crash CUPTI (kineto#1534).
    *buffer = pool.acquire_scratch(session);
    *bytes = BufferPool::kScratchBytes;
  }
}

void Session::on_buffer_completed(void*, uint32_t, uint8_t* data, size_t, size_t valid) noexcept {
  if (data == nullptr || cupti::out_of_use()) return;
  Session& self = *called_back.load(std::memory_order_acquire);
  const CallbackTime time(self.budget_);
  self.decode_thread_.complete(data, valid);
}

void Session::on_callback(void*, uint32_t domain, uint32_t callback_id, const void* data) noexcept {
  if (data == nullptr || cupti::out_of_use()) return;
  Session& self = *called_back.load(std::memory_order_acquire);
  if (!self.accepting_.load(std::memory_order_acquire)) return;
  if (domain == cupti::kResourceDomain) {
    self.on_resource(callback_id, data);
    return;
  }
  const bool is_runtime = domain == static_cast<uint32_t>(cupti::CallbackDomain::kRuntimeApi);
  if (!is_runtime && domain != static_cast<uint32_t>(cupti::CallbackDomain::kDriverApi)) return;
  const auto& call = *static_cast<const cupti::ApiCallData*>(data);
  if (const auto* const update = cupti::graph_update_call(domain, callback_id)) {
    self.graphs_.notice_call(self.library(), *update, call, this_thread_id());
    return;
  }
  on_profiler_call(is_runtime, callback_id, call.callbackSite);
  if (call.callbackSite == cupti::kCallReturned && call.functionReturnValue != nullptr) {
    self.decode_thread_.watch().returned(domain, callback_id, *static_cast<const uint32_t*>(call.functionReturnValue));
  }
}

void Session::on_profiler_call(bool is_runtime, uint32_t callback_id, uint32_t site) noexcept {
  const uint32_t start = is_runtime ? cupti::kRuntimeProfilerStartCall : cupti::kProfilerStartCall;
  const uint32_t stop = is_runtime ? cupti::kRuntimeProfilerStopCall : cupti::kProfilerStopCall;
  if (callback_id == start && site == cupti::kCallReturned) CaptureRanges::instance().profiler_started();
  if (callback_id == stop && site == cupti::kCallEntered) CaptureRanges::instance().profiler_stopped();
}

void Session::on_resource(uint32_t callback_id, const void* data) noexcept {
  const auto& resource = *static_cast<const cupti::ResourceData*>(data);
  ThreadAnnotations* const thread = annotations_of_this_thread();
  if (resource.resourceDescriptor == nullptr || thread == nullptr) return;
  const OpenAnnotation* const naming = thread->open.naming();
  const uint64_t annotation = naming == nullptr ? 0 : naming->id;
  graphs_.notice(library(), callback_id, *static_cast<const cupti::GraphData*>(resource.resourceDescriptor),
                 thread->inlined, annotation, this_thread_id());
}

// --- Journal -----------------------------------------------------------------------------------------------------

void Session::end_collecting() {
  collecting_.store(false, std::memory_order_release);
  flusher_.forbid();
}

void Session::leave_at_exit() {
  Session* const self = called_back.load(std::memory_order_acquire);
  if (self == nullptr || cupti::out_of_use()) return;
  const threads::NotCancelled not_cancelled;
  if (void (*const end)() = self->end_at_exit_.load(std::memory_order_acquire)) end();
  cupti::end_use();
  // Calls of libcupti that are running may end: those of a session, and those of annotations, which hold no lock.
  if (threads::lock_within(self->control_, threads::kPatience)) self->control_.unlock();
  threads::sleep_uncancelled(kMillisecond);
  self->flusher_.forbid_at_exit();
}

std::string Session::journal_trouble() {
  if (cupti::forked_after_use()) return "";  // the journal is the parent's
  const threads::MutexLock lock(control_);
  return active() ? "" : flusher_.trouble();
}

void Session::remove_journal() {
  if (cupti::forked_after_use()) return;
  const threads::NotCancelled not_cancelled;
  const threads::MutexLock lock(control_);
  if (!active()) flusher_.remove();
}

// --- Start -------------------------------------------------------------------------------------------------------

void Session::begin_journal(const StartOptions& options) {
  if (options.journal.empty()) return;
  std::map<std::string, std::string> texts = options.journal_texts;
  texts.emplace("environment.cupti_path", library().portable_path());
  if (const std::string first = library().activity_api().first_subscriber(); !first.empty()) {
    texts.emplace("environment.first_subscriber", first);
  }
  add_names(library().devices(), texts);
  std::map<std::string, int64_t> numbers = {{"clock.cupti_start_ns", start_.cupti_ns},
                                            {"clock.wall_start_ns", start_.wall_ns},
                                            {"clock.uncertainty_ns", start_.uncertainty_ns},
                                            {"environment.driver_version", library().driver_version()},
                                            {"environment.cupti_api_version", library().api_version()},
                                            {"environment.cuda_version", library().cuda_version()},
                                            {"environment.simulated", library().simulated()},
                                            {"environment.shared_subscription", subscription_.is_shared()}};
  if (peer_copies_) numbers.emplace("environment.peer_copies", *peer_copies_);
  if (options.ranges.has_ranges()) numbers.insert({{kRangesSeen, 0}, {kRangesRecorded, 0}});
  flusher_.begin(options.journal, options.segments, library(), texts, numbers);
}

void Session::finish_journal(const Capture& capture) {
  std::map<std::string, std::string> texts;
  add_names(capture.devices, texts);  // they are unknown until the program has initialised CUDA
  std::map<std::string, int64_t> numbers = capture.counters;
  numbers["clock.cupti_stop_ns"] = capture.stop.cupti_ns;
  numbers["clock.wall_stop_ns"] = capture.stop.wall_ns;
  numbers["clock.uncertainty_ns"] = capture.uncertainty_ns();
  numbers["own_calls.thread_id"] = capture.own_calls.thread_id;
  numbers["own_calls.from_ns"] = capture.own_calls.from_ns;
  flusher_.finish(texts, numbers);
}

std::optional<Failure> Session::start(const StartOptions& options) {
  const threads::NotCancelled not_cancelled;
  if (auto failure = cupti::begin_use()) return failure;  // in a forked child control_ may be locked for ever
  const threads::MutexLock lock(control_);
  if (collecting_.load(std::memory_order_relaxed)) {
    if (is_paused_.load(std::memory_order_relaxed)) {
      return Failure{cupti::FailureKind::kAlreadyActive,
                     "`collector run --capture-range` records this process, and is outside its ranges",
                     "Leave one of the two out"};
    }
    if (flusher_.is_broken() && holder_ != Holder::kCaller) {
      return Failure{cupti::FailureKind::kAlreadyActive,
                     "a recording of this process is open, which broke off: its journal could not be written any more",
                     "See whether the disk is full; nothing else is recorded until the program ends"};
    }
    if (holder_ == Holder::kInjection) {
      return Failure{cupti::FailureKind::kAlreadyActive,
                     "`collector run` records this process, and its trace has this step", "Leave one of the two out"};
    }
    if (holder_ == Holder::kRecorder) {
      return Failure{cupti::FailureKind::kAlreadyActive, "`collector.record` records this process", "Stop it first"};
    }
    if (holder_ == Holder::kControl) {
      return Failure{cupti::FailureKind::kAlreadyActive, "`collector attach` records this process",
                     "Stop it first: collector attach PID stop"};
    }
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
  const SelectRanges select_ranges = select_ranges_.load(std::memory_order_acquire);
  RangeSelection nvtx_before;
  bool is_selected = false;
  flusher_.reset();
  try {
    if (select_ranges != nullptr) nvtx_before = select_ranges(options.nvtx);
    is_selected = select_ranges != nullptr;
    failure = start_tracing(options);
  } catch (const std::exception& error) {  // no memory for the buffers, or no thread
    failure = Failure{cupti::FailureKind::kCuptiCall, std::string("tracing could not start: ") + error.what(),
                      "Use fewer or smaller buffers (max_buffers, buffer_bytes)"};
  }
  if (failure) {
    roll_back();
    flusher_.remove();
    if (is_selected) select_ranges(std::move(nvtx_before));
    return failure;
  }
  holder_ = options.holder;
  end_at_exit_.store(options.end_at_exit, std::memory_order_release);
  if (left_at_exit_ != library.get()) {
    // Exit handlers run in the reverse order, and so this one before the destructors of what libcupti has made by now.
    left_at_exit_ = library.get();
    std::atexit(leave_at_exit);
  }
  journal_ = options.journal;
  collecting_.store(true, std::memory_order_release);
  flusher_.allow(this->library());
  if (is_paused_.load(std::memory_order_relaxed) && CaptureRanges::instance().is_open()) open_capture_range_now();
  return std::nullopt;
}

std::optional<Failure> Session::start_tracing(const StartOptions& options) {
  const size_t buffer_bytes =
      options.journal.empty() ? options.buffer_bytes : std::min(options.buffer_bytes, kJournaledBufferBytes);
  const size_t num_buffers = options.max_buffers * (options.buffer_bytes / buffer_bytes);
  decode_thread_.prepare(buffer_bytes, static_cast<uint32_t>(std::min<size_t>(num_buffers, UINT32_MAX)));
  number_.store(number_.load(std::memory_order_relaxed) % kMostSessions + 1, std::memory_order_relaxed);
  may_decline_.store(library().has(Feature::kDeclineBuffers), std::memory_order_relaxed);
  called_back.store(this, std::memory_order_release);
  constexpr cupti::BufferCallbacks kOnBuffer = {
      on_buffer_requested,
      on_buffer_completed,
      [](uint8_t** buffer, size_t* bytes, size_t* max_records, const void*) {
        on_buffer_requested(buffer, bytes, max_records);
      },
      [](uint8_t* data, size_t bytes, size_t valid, const void*) {
        on_buffer_completed(nullptr, 0, data, bytes, valid);
      },
  };
  if (auto failure = subscription_.open(library(), options.share_subscription, kOnBuffer, on_callback)) return failure;
  library().clock().learn();
  const std::optional<Anchor> clocks = read_clocks(library());
  if (!clocks) return Failure{cupti::FailureKind::kCuptiCall, "CUPTI's clock cannot be read (cuptiGetTimestamp)", ""};
  start_ = *clocks;
  library().activity_api().take_num_dropped();  // drops before the session belong to no session
  const bool of_whole_run = options.holder == Holder::kInjection || options.holder == Holder::kControl;
  program_.store(of_whole_run ? kRecordedProgram : kProgram, std::memory_order_relaxed);
  annotations_.begin(!options.journal.empty(), options.journal_only, of_whole_run);
  graphs_.begin(options.journal_only);
  ranges_.begin(options.journal_only);
  peer_copies_ = records_peer_copies(options.kinds);
  begin_journal(options);
  if (options.journal_only && !flusher_.trouble().empty()) {
    return Failure{cupti::FailureKind::kCuptiCall, options.journal + " cannot be written (" + flusher_.trouble() + ")",
                   ""};
  }
  budget_.begin(options.budget_millionths, options.budget_period_ns, options.kinds);
  has_launch_names_.store(true, std::memory_order_relaxed);
  has_ranges_.store(true, std::memory_order_relaxed);
  decode_thread_.forget_written_rows(options.journal_only);
  decode_thread_.watch().begin(library(), options.watch);
  if (options.holder == Holder::kRecorder) subscription_.watch_calls(decode_thread_.watch().waits());
  decode_thread_.start(library());
  accepting_.store(true, std::memory_order_release);
  capture_ranges_ = {};
  if (options.ranges.has_ranges()) return start_capture_ranges(options);
  return subscription_.enable(options.kinds);
}

std::optional<Failure> Session::start_capture_ranges(const StartOptions& options) {
  // Records of objects are few, and are written once.
  std::vector<cupti::ActivityKind> objects;
  for (const cupti::ActivityKind kind : options.kinds) {
    (cupti::is_made_once(kind) ? objects : capture_ranges_.work_kinds).push_back(kind);
  }
  capture_ranges_.options = options.ranges;
  late_close_ns_.store(0, std::memory_order_relaxed);
  is_paused_.store(true, std::memory_order_relaxed);
  if (options.ranges.source == CaptureRangeOptions::Source::kProfilerApi) {
    if (auto failure = subscription_.watch_profiler_calls()) return failure;
  }
  return subscription_.enable(objects);
}

void Session::roll_back() {
  const bool has_recorded = subscription_.has_enabled();
  is_paused_.store(false, std::memory_order_relaxed);
  subscription_.disable();
  // Otherwise these records would come back in the next session, with names that are unknown there.
  if (has_recorded) flush_rest(clock_ns(CLOCK_MONOTONIC) + kIdleWait, kIdleWait);
  accepting_.store(false, std::memory_order_release);
  subscription_.close();
  decode_thread_.stop();
  flusher_.close();
  decode_thread_.forget_rows();
}

// --- Budget ------------------------------------------------------------------------------------------------------

bool Session::leave_out(Lever lever) {
  Session& self = *called_back.load(std::memory_order_acquire);
  if (!self.control_.try_lock()) return false;  // the session begins or ends, or the journal is brought up to date
  const threads::MutexLock lock(self.control_, std::adopt_lock);
  return self.active() && self.try_leave_out(lever);
}

bool Session::try_leave_out(Lever lever) {
  // The time is read before anything is disabled: only later records may be missing.
  const int64_t since_ns = cupti_now() - start_.cupti_ns;
  if (lever == Lever::kGraphNodes && !subscription_.record_whole_graphs()) return false;
  if (lever == Lever::kNvtxRanges) has_ranges_.store(false, std::memory_order_relaxed);
  if (lever == Lever::kApiCalls) has_launch_names_.store(false, std::memory_order_relaxed);
  const std::vector<cupti::ActivityKind>& left_out = kinds_of(lever);
  subscription_.disable(left_out);
  auto& kinds = capture_ranges_.work_kinds;  // they stay disabled in later ranges
  kinds.erase(std::remove_if(kinds.begin(), kinds.end(),
                             [&](cupti::ActivityKind kind) {
                               return std::find(left_out.begin(), left_out.end(), kind) != left_out.end();
                             }),
              kinds.end());
  if (lever == Lever::kGraphNodes) kinds.push_back(cupti::ActivityKind::kGraphTrace);
  budget_.left_out(lever, since_ns);
  return true;
}

// --- Stop --------------------------------------------------------------------------------------------------------

bool Session::synchronize_contexts() const {
  const cupti::DriverFunctions& driver = library().driver();
  if (driver.CtxSynchronize == nullptr) return false;
  bool are_done = true;
  void* current = nullptr;
  if (driver.CtxGetCurrent != nullptr && driver.CtxGetCurrent(&current) == 0 && current != nullptr) {
    are_done = driver.CtxSynchronize() == 0;
  }
  int count = 0;
  // A driver library that wraps the real one may lack some of these functions.
  if (driver.DeviceGetCount == nullptr || driver.DeviceGet == nullptr || driver.DevicePrimaryCtxGetState == nullptr ||
      driver.DevicePrimaryCtxRetain == nullptr || driver.DevicePrimaryCtxRelease == nullptr ||
      driver.CtxPushCurrent == nullptr || driver.CtxPopCurrent == nullptr) {
    return are_done;
  }
  if (driver.DeviceGetCount(&count) != 0) return are_done;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    unsigned flags = 0;
    int is_active = 0;
    void* context = nullptr;
    if (driver.DeviceGet(&device, ordinal) != 0) continue;
    // Only contexts that the program created: retaining an inactive primary context would create it.
    if (driver.DevicePrimaryCtxGetState(device, &flags, &is_active) != 0 || is_active == 0) continue;
    if (driver.DevicePrimaryCtxRetain(&context, device) != 0) continue;
    if (context != current && driver.CtxPushCurrent(context) == 0) {
      are_done = driver.CtxSynchronize() == 0 && are_done;
      void* popped = nullptr;
      driver.CtxPopCurrent(&popped);
    }
    driver.DevicePrimaryCtxRelease(device);
  }
  return are_done;
}

template <typename CountMissing>
void Session::flush(uint32_t forced, int64_t deadline_ns, int64_t patience_ns, CountMissing count_missing) {
  library().cupti().ActivityFlushAll(forced);
  int64_t least_missing = count_missing();
  int64_t quiet_since = clock_ns(CLOCK_MONOTONIC);
  for (int64_t pause = kMillisecond / 50; least_missing > 0; pause = std::min(2 * pause, kLongestPause)) {
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now > deadline_ns || now - quiet_since > patience_ns)
      return;  // CUPTI holds buffers back, e.g. of a running kernel or an idle thread
    sleep_ns(pause);
    // A buffer with an unfinished record comes back when the record is finished and it is full, or is flushed again.
    if (forced == 0) library().cupti().ActivityFlushAll(forced);
    // Buffers that are requested and come back meanwhile are no progress: each flush fills one with its own overheads.
    if (const int64_t missing = count_missing(); missing < least_missing) {
      least_missing = missing;
      quiet_since = clock_ns(CLOCK_MONOTONIC);
    }
  }
}

// A forced flush also ends the records of unfinished work of other subscribers, who get no other record of it.
void Session::flush_rest(int64_t deadline_ns, int64_t patience_ns) {
  const auto count_missing = [pool = pools_.current(), session = number_.load(std::memory_order_relaxed)] {
    return pool->outstanding(session);
  };
  if (library().activity_api().subscriber() != nullptr) {
    flush(0, deadline_ns, kIdleWait, count_missing);
    if (count_missing() == 0) return;
  }
  flush(1, deadline_ns, patience_ns, count_missing);
}

std::optional<Capture> Session::stop(bool synchronize, int64_t timeout_ns, Holder holder) {
  if (!active()) return std::nullopt;
  const threads::NotCancelled not_cancelled;
  const threads::MutexLock lock(control_);
  if (!active() || holder_ != holder) return std::nullopt;  // another thread may have ended the session in the meantime
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
  Capture capture{};
  capture.own_calls.thread_id = this_thread_id();
  library().clock().learn();
  capture.own_calls.from_ns = cupti_now();
  const bool are_done = synchronize && synchronize_contexts();
  end_collecting();
  capture.start = start_;
  capture.stop = read_clocks(library()).value_or(start_);

  // First the records of finished work; then, with all kinds disabled, all others.
  library().cupti().ActivityFlushAll(0);
  subscription_.disable();
  flush_rest(deadline, are_done ? kDeliveryWait : kIdleWait);
  flusher_.count_dropped(library());
  accepting_.store(false, std::memory_order_release);
  is_paused_.store(false, std::memory_order_relaxed);
  subscription_.close();
  decode_thread_.stop();
  capture.own_calls.decode_thread_id = decode_thread_.calling_thread_id();
  graphs_.move_to(decode_thread_.store());
  ranges_.move_to(decode_thread_.store(), capture.stop.cupti_ns);
  decode_thread_.complete_journal();
  decode_thread_.store().sort();

  capture.library = &library();
  capture.store = decode_thread_.lend_store();
  capture.annotations = annotations_.take(capture.stop.cupti_ns, capture.annotation_paths);
  capture.devices = library().devices();
  capture.shared_subscription = subscription_.is_shared();
  capture.peer_copies = peer_copies_;
  capture.first_subscriber = library().activity_api().first_subscriber();
  capture.counters = decode_thread_.counters();
  capture.counters["buffers_outstanding"] = pools_.current()->outstanding(number_.load(std::memory_order_relaxed));
  if (!are_done) capture.counters["work_not_awaited"] = 1;
  capture.counters["decode_cpu_ns"] = decode_thread_.cpu_ns();
  if (capture_ranges_.options.has_ranges()) {
    capture.counters[kRangesSeen] = CaptureRanges::instance().seen();
    capture.counters[kRangesRecorded] = capture_ranges_.recorded;
  }
  finish_journal(capture);
  flusher_.close();
  pools_.release_memory();
  return capture;
}

std::optional<Anchor> Session::instant() const { return active() ? read_clocks(library()) : std::nullopt; }

std::optional<SessionState> Session::state() {
  if (!active()) return std::nullopt;
  const threads::MutexLock lock(control_);
  if (!active()) return std::nullopt;
  return SessionState{holder_, journal_, flusher_.is_broken() ? "its file could not be written any more" : ""};
}

void Session::note_facts(const std::map<std::string, std::string>& texts,
                         const std::map<std::string, int64_t>& numbers) {
  if (active()) decode_thread_.note_facts(texts, numbers);
}

std::optional<WatchedState> Session::watched_state() {
  if (!active() || !decode_thread_.watch().is_watching()) return std::nullopt;
  WatchedState state = decode_thread_.watch().state();
  state.buffers_held = static_cast<uint64_t>(pools_.current()->outstanding(number_.load(std::memory_order_relaxed)));
  return state;
}

std::string Session::callback_name(uint32_t domain, uint32_t callback_id) const {
  const cupti::Library* const library = library_.load(std::memory_order_acquire);
  if (library == nullptr || callback_id == 0) return "";
  return library->callback_name(static_cast<cupti::CallbackDomain>(domain), callback_id);
}

std::optional<JournalMark> Session::mark(Completeness wanted, bool synchronize, int64_t timeout_ns) {
  if (!active()) return std::nullopt;
  const threads::NotCancelled not_cancelled;
  const threads::MutexLock lock(control_);
  if (!active() || holder_ == Holder::kCaller) return std::nullopt;
  if (flusher_.is_broken()) {
    const std::optional<Anchor> clocks = read_clocks(library());
    if (wanted < Completeness::kCut || !clocks || flusher_.segment_number() == 0) return std::nullopt;
    return JournalMark{journal_, flusher_.segment_number() + 1, *clocks, {this_thread_id(), cupti_now()}, {}, true, {}};
  }
  if (!library().has(Feature::kFlushingIsSafe)) return std::nullopt;
  if (wanted == Completeness::kAsIs && is_paused_.load(std::memory_order_relaxed)) return std::nullopt;
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
  JournalMark mark{journal_, flusher_.segment_number(), {}, {this_thread_id(), cupti_now()}, {}, true, {}};
  if (synchronize) synchronize_contexts();
  const std::optional<Anchor> clocks = read_clocks(library());
  if (!clocks) return std::nullopt;
  mark.time = *clocks;
  const BufferPool* const pool = pools_.current();
  mark.held = pool->held(number_.load(std::memory_order_relaxed));
  mark.has_calls = subscription_.has_calls();
  if (wanted == Completeness::kAsIs) {  // a step of the program begins, which does not wait
    flusher_.count_dropped_unless_flushing(library());
    mark.losses = decode_thread_.losses();
    return mark;
  }
  // A step of the program does not wait for work that it did not wait for itself.
  if (wanted == Completeness::kRunning) {
    flush_rest(deadline, kIdleWait);
  } else {
    const auto is_out = [pool](const HeldBuffer& buffer) { return pool->is_out(buffer); };
    flush(0, deadline, wanted == Completeness::kCut ? kUnfinishedWait : kIdleWait,
          [&]() -> int64_t { return std::count_if(mark.held.begin(), mark.held.end(), is_out); });
  }
  flusher_.count_dropped(library());
  mark.held = decode_thread_.bring_journal_up_to_date(mark.held, deadline, wanted >= Completeness::kCut);
  mark.segment = flusher_.segment_number();
  if (wanted >= Completeness::kCut && mark.segment != 0 && flusher_.is_broken()) ++mark.segment;  // nothing follows
  mark.losses = decode_thread_.losses();
  return mark;
}

// --- Capture ranges ----------------------------------------------------------------------------------------------

void Session::open_capture_range() {
  const threads::NotCancelled not_cancelled;
  if (!active() || !threads::lock_within(control_, threads::kPatience)) return;
  const threads::MutexLock lock(control_, std::adopt_lock);
  if (active()) open_capture_range_now();
}

void Session::open_capture_range_now() {
  RecordedRanges& ranges = capture_ranges_;
  if (const int64_t closed_ns = late_close_ns_.exchange(0); closed_ns != 0) close_capture_range_at(closed_ns);
  if (!ranges.options.has_ranges() || ranges.is_open) return;
  if (ranges.is_over() || !enable_range_kinds()) {
    state_capture_ranges({});
    return;
  }
  ranges.is_open = ranges.has_kinds = true;
  ++ranges.recorded;
  state_capture_ranges({{"range." + std::to_string(ranges.recorded) + ".begin_ns", cupti_now()}});
  is_paused_.store(false, std::memory_order_relaxed);
}

bool Session::enable_range_kinds() {
  const RecordedRanges& ranges = capture_ranges_;
  if (!subscription_.enable(ranges.work_kinds)) return true;
  // Work of the range before may go on, and is recorded until it has settled.
  subscription_.disable(ranges.has_kinds ? call_kinds() : ranges.work_kinds);
  return false;
}

void Session::close_capture_range() {
  if (!active()) return;
  const threads::NotCancelled not_cancelled;
  const int64_t now = cupti_now();
  if (!threads::lock_within(control_, threads::kPatience)) {
    late_close_ns_.store(now);
    return;
  }
  const threads::MutexLock lock(control_, std::adopt_lock);
  if (active()) close_capture_range_at(now);
}

void Session::close_capture_range_at(int64_t cupti_ns) {
  RecordedRanges& ranges = capture_ranges_;
  if (!ranges.is_open) return;
  ranges.is_open = false;
  is_paused_.store(true, std::memory_order_relaxed);
  // Without records of later calls, LaunchWatch counts only the launches of ranges.
  subscription_.disable(call_kinds());
  ranges.closed_ns = clock_ns(CLOCK_MONOTONIC);
  ranges.flushes = flusher_.flushes();
  ranges.buffers_requested = pools_.current()->requested();
  state_capture_ranges({{"range." + std::to_string(ranges.recorded) + ".end_ns", cupti_ns}});
}

void Session::state_capture_ranges(const std::map<std::string, int64_t>& bounds) {
  std::map<std::string, int64_t> numbers = bounds;
  numbers[kRangesSeen] = CaptureRanges::instance().seen();
  numbers[kRangesRecorded] = capture_ranges_.recorded;
  decode_thread_.note_facts({}, numbers);
}

Session::Settling Session::settle_capture_range() {
  {
    if (!active()) return Settling::kOver;
    const threads::MutexLock lock(control_);
    if (!active()) return Settling::kOver;
    if (const int64_t closed_ns = late_close_ns_.exchange(0); closed_ns != 0) close_capture_range_at(closed_ns);
    if (!capture_ranges_.is_settling()) return capture_ranges_.is_over() ? Settling::kOver : Settling::kSettled;
  }
  decode_thread_.flush_soon();
  const std::optional<WatchedState> watched = watched_state();
  const threads::MutexLock lock(control_);
  if (!active()) return Settling::kOver;
  RecordedRanges& ranges = capture_ranges_;
  if (!ranges.is_settling()) return ranges.is_over() ? Settling::kOver : Settling::kSettled;
  // What came back by a flush is decoded before the next one.
  const bool is_up_to_date = flusher_.flushes() >= ranges.flushes + 2;
  const bool is_complete =
      watched && watched->outstanding == 0 &&
      pools_.current()->outstanding(number_.load(std::memory_order_relaxed), ranges.buffers_requested) == 0;
  const bool is_late = clock_ns(CLOCK_MONOTONIC) - ranges.closed_ns > kLongestSettling;
  if (!is_late && !(is_up_to_date && is_complete)) return Settling::kWaiting;
  subscription_.disable(ranges.work_kinds);
  ranges.has_kinds = false;
  return ranges.is_over() ? Settling::kOver : Settling::kSettled;
}

void Session::abort() {
  if (!active()) return;
  const threads::NotCancelled not_cancelled;
  if (!control_.try_lock()) return;
  const threads::MutexLock lock(control_, std::adopt_lock);
  if (!active() || holder_ != Holder::kCaller) return;
  end_collecting();
  roll_back();
}

// --- Annotations -------------------------------------------------------------------------------------------------

void Session::note_details(std::string_view details) {
  if (active()) annotations_.note_details(details);
}

void Session::note_run_details(std::string_view details) {
  if (cupti::out_of_use()) return;  // the lock may be held for ever, and no session follows
  annotations_.note_run_details(details);
}

int64_t Session::cupti_now() const { return library().clock().now().value_or(0); }

void Session::push(ThreadAnnotations& thread, Owner owner, const Place& place, uint32_t details_id,
                   const RangeTexts* range) {
  const auto depth = static_cast<uint16_t>(thread.open.size());
  OpenAnnotation& entry = thread.open.add(owner);
  annotations_.open(entry, place, thread.paths, cupti_now(), thread.thread_id, depth, details_id, range);
  push_id(entry);
}

void Session::push_id(OpenAnnotation& entry) {
  if (!has_launch_names_.load(std::memory_order_relaxed)) return;
  const cupti::ActivityApi& api = library().activity_api();
  entry.is_pushed = api.has_external_correlation() && api.push_external_id(entry.id) == Result::kSuccess;
}

void Session::pop(OpenAnnotations& open, size_t index, bool suspends) {
  const OpenAnnotation& entry = open[index];
  const uint64_t id = entry.id;
  const bool encloses = suspends && id != 0 && open.has_within(id, index + 1);
  const bool changes_cupti = (entry.is_pushed || encloses) && !cupti::out_of_use();
  // CUPTI has one stack for all owners: it is popped down to the entry, and the others are pushed again. This happens
  // also after the session has ended, because an id left on the stack would be attached to launches of a later one.
  for (size_t i = open.size(); changes_cupti && i-- > index;) {
    uint64_t popped = 0;
    if (!open[i].is_pushed) continue;
    library().activity_api().pop_external_id(&popped);
  }
  if (encloses) ranges_.suspend(open.suspend_within(id, index + 1));
  for (size_t i = index + 1; changes_cupti && i < open.size(); ++i) {
    if (!open[i].is_pushed) continue;
    library().activity_api().push_external_id(open[i].id);
  }
  open.remove(index);
  if (id != 0 && active()) annotations_.close(id, cupti_now());
}

// Ranges are not followed between sessions: those that were open when a session ended are forgotten in the next one.
void Session::forget_ranges_of_earlier_sessions(ThreadAnnotations& thread) {
  const uint32_t number = number_.load(std::memory_order_relaxed);
  if (thread.session == number) return;
  thread.session = number;
  thread.open.forget_left_out();
  for (size_t i = thread.open.size(); i-- > 0;) {
    if (!is_program(thread.open[i].owner)) pop(thread.open, i);
  }
}

void Session::push_annotation(Owner owner, std::string_view path, uint32_t details_id, uint64_t block) {
  ThreadAnnotations* const thread = annotations_of_this_thread();
  if (thread == nullptr) return;
  const SampledTime time(budget_, false);
  if (!active() || owner != program_.load(std::memory_order_relaxed)) {
    thread->open.add(owner);
    return;
  }
  forget_ranges_of_earlier_sessions(*thread);
  OpenAnnotations& open = thread->open;
  push(*thread, owner, open.place_of(path, owner), details_id);
  open[open.size() - 1].given_path = path;
  open[open.size() - 1].block = block;
  if (open.num_ranges() == 0) return;
  for (size_t resumed = open.resume_in_last(); resumed > 0; --resumed) push_id(open[open.size() - resumed]);
}

void Session::pop_annotation(Owner owner, bool is_over) {
  ThreadAnnotations* const thread = annotations_of_this_thread();
  if (thread == nullptr) return;
  const SampledTime time(budget_, false);
  OpenAnnotations& open = thread->open;
  const size_t index = open.innermost_of(owner);
  if (index < open.size()) pop(open, index, !is_over);
}

int Session::push_range(Owner owner, const RangeTexts& texts) {
  if (CaptureRanges::watches_nvtx()) CaptureRanges::instance().pushed(owner, texts.name, texts.domain);
  ThreadAnnotations* const thread = active() ? annotations_of_this_thread() : nullptr;
  if (thread == nullptr) return kNotTracked;
  const SampledTime time(budget_, true);
  forget_ranges_of_earlier_sessions(*thread);
  const size_t level = thread->open.count_of(owner);
  if (thread->open.is_full(owner)) {
    thread->open.leave_out(owner);
    ranges_.leave_out();
    return static_cast<int>(level);
  }
  if (!has_ranges_.load(std::memory_order_relaxed)) {
    thread->open.add(owner);  // its end must not close a range around it
    return static_cast<int>(level);
  }
  push(*thread, owner, thread->open.place_of_range(texts.name), 0, texts.is_name_alone() ? nullptr : &texts);
  return static_cast<int>(level);
}

int Session::pop_range(Owner owner) {
  const int level = pop_recorded_range(owner);
  if (CaptureRanges::watches_nvtx()) CaptureRanges::instance().popped(owner);
  return level;
}

// Between sessions the end of a range of the last one is followed, as CUPTI has its id.
int Session::pop_recorded_range(Owner owner) {
  if (!active()) {
    ThreadAnnotations* const known = used_this_thread;
    if (known == nullptr || known->open.num_ranges() == 0) return kNotTracked;
    const size_t stale = known->open.innermost_of(owner);
    if (stale < known->open.size()) pop(known->open, stale);
    return kNotTracked;
  }
  ThreadAnnotations* const thread = annotations_of_this_thread();
  if (thread == nullptr) return kNotTracked;
  const SampledTime time(budget_, true);
  forget_ranges_of_earlier_sessions(*thread);
  if (!thread->open.end_left_out(owner)) {
    const size_t index = thread->open.innermost_of(owner);
    if (index == thread->open.size()) return kNotTracked;
    pop(thread->open, index);
  }
  return static_cast<int>(thread->open.count_of(owner));
}

void Session::mark(const RangeTexts& texts) {
  if (!active() || !has_ranges_.load(std::memory_order_relaxed)) return;
  const SampledTime time(budget_, true);
  ranges_.mark(texts, cupti_now(), this_thread_id());
}

uint64_t Session::start_recorded_range(const RangeTexts& texts) {
  if (!active() || !has_ranges_.load(std::memory_order_relaxed)) return 0;
  const SampledTime time(budget_, true);
  return ranges_.start(texts, cupti_now(), this_thread_id());
}

uint64_t Session::start_range(const RangeTexts& texts) {
  const uint64_t id = start_recorded_range(texts);
  return CaptureRanges::watches_nvtx() ? CaptureRanges::instance().started(id, texts.name, texts.domain) : id;
}

bool Session::end_range(uint64_t id) {
  const bool is_known = active() && ranges_.end(id, cupti_now(), this_thread_id());
  if (CaptureRanges::watches_nvtx()) CaptureRanges::instance().ended(id);
  return is_known;
}

void Session::leave_thread(OpenAnnotations& open) noexcept {
  if (!active()) return;
  try {
    const int64_t now = cupti_now();
    for (size_t i = open.size(); i-- > 0;) {
      if (open[i].id != 0) annotations_.close(open[i].id, now);
    }
  } catch (...) {
    return;  // no memory: they end with the session
  }
}

}  // namespace collector::capture
