#include "capture/session.h"

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "capture/buffer_flush.h"
#include "capture/clocks.h"
#include "cupti/context_waits.h"
#include "threads/not_cancelled.h"
#include "threads/patient_lock.h"
#include "threads/thread_id.h"

namespace collector::capture {
namespace {

using cupti::Failure;
using cupti::Feature;

// Of a session with a journal. CUPTI keeps a buffer as long as a record in it is unfinished, so that of a GPU that
// always has work only full buffers come back: the larger they are, the more is missing in the journal of a killed
// program.
constexpr size_t kJournaledBufferBytes = size_t{256} << 10;

// The session for the callbacks, which must not create one.
std::atomic<Session*> called_back{nullptr};

// No value: no copies are recorded, nor are those between GPUs missed then.
std::optional<bool> records_peer_copies(const std::vector<cupti::ActivityKind>& kinds) {
  const auto has = [&](cupti::ActivityKind kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  if (!has(cupti::ActivityKind::kMemcpy)) return std::nullopt;
  return has(cupti::ActivityKind::kMemcpy2);
}

void add_names(const std::vector<cupti::Device>& devices, std::map<std::string, std::string>& texts) {
  for (const cupti::Device& device : devices) texts["device." + std::to_string(device.ordinal)] = device.name;
}

// Why a second session cannot begin. `is_paused`: the first one records only ranges, and none is open.
Failure already_open(Holder holder, bool is_paused, bool is_broken) {
  const auto failure = [](const char* cause, const char* remedy) {
    return Failure{cupti::FailureKind::kAlreadyActive, cause, remedy};
  };
  if (is_paused) {
    return failure("`collector run --capture-range` records this process, and is outside its ranges",
                   "Leave one of the two out");
  }
  if (is_broken && holder != Holder::kCaller) {
    return failure("a recording of this process is open, which broke off: its journal could not be written any more",
                   "See whether the disk is full; nothing else is recorded until the program ends");
  }
  switch (holder) {
    case Holder::kInjection:
      return failure("`collector run` records this process, and its trace has this step", "Leave one of the two out");
    case Holder::kRecorder:
      return failure("`collector.record` records this process", "Stop it first");
    case Holder::kControl:
      return failure("`collector attach` records this process", "Stop it first: collector attach PID stop");
    case Holder::kCaller:
      break;
  }
  return failure("a session is already open in this process", "Close it first");
}

}  // namespace

Session& Session::instance() {
  static auto* const instance = new Session();
  return *instance;
}

Session::Session() {
  static constexpr CaptureRanges::Recorder kRecorder = {[] { instance().open_capture_range(); },
                                                        [] { instance().close_capture_range(); }};
  CaptureRanges::instance().set_recorder(&kRecorder);
}

// --- Callbacks ---------------------------------------------------------------------------------------------------

void Session::on_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) noexcept {
  Session& self = *called_back.load(std::memory_order_acquire);
  const CallbackTime time(self.budget_);
  const BufferPools::Use pools(self.pools_);
  BufferPool& pool = pools.current();
  const uint32_t session = self.open_.number();
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
    self.graphs_.notice_call(self.library(), *update, call, threads::this_thread_id());
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
  ThreadAnnotations* const thread = Annotator::of_this_thread();
  if (resource.resourceDescriptor == nullptr || thread == nullptr) return;
  const OpenAnnotation* const naming = thread->open.naming();
  const uint64_t annotation = naming == nullptr ? 0 : naming->id;
  graphs_.notice(library(), callback_id, *static_cast<const cupti::GraphData*>(resource.resourceDescriptor),
                 thread->inlined, annotation, threads::this_thread_id());
}

// --- Journal -----------------------------------------------------------------------------------------------------

void Session::end_collecting() {
  open_.close();
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
  if (options.ranges.has_ranges()) numbers.merge(RecordedRanges::first_counts());
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
  if (open_.is_open()) return already_open(holder_, capture_ranges_.are_paused(), flusher_.is_broken());
  cupti::Library::Opened opened = cupti::Library::open(options.paths);
  if (const Failure* failure = std::get_if<Failure>(&opened)) return *failure;
  auto& library = std::get<std::shared_ptr<const cupti::Library>>(opened);
  if (open_.known_library() != library.get()) {
    libraries_.push_back(library);
    open_.use(*library);
  }

  std::optional<Failure> failure;
  const SelectRanges select_ranges = select_ranges_.load(std::memory_order_acquire);
  RangeSelection nvtx_before;
  bool is_selected = false;
  flusher_.reset();
  const auto undo = [&]() REQUIRES(control_) {
    roll_back();
    flusher_.remove();
    if (is_selected) select_ranges(std::move(nvtx_before));
  };
  try {
    if (select_ranges != nullptr) nvtx_before = select_ranges(options.nvtx);
    is_selected = select_ranges != nullptr;
    failure = start_tracing(options);
  } catch (const std::exception& error) {  // no memory for the buffers, or no thread
    undo();                                // first: there may be no memory for the texts either
    return Failure{cupti::FailureKind::kCuptiCall, std::string("tracing could not start: ") + error.what(),
                   "Use fewer or smaller buffers (max_buffers, buffer_bytes)"};
  }
  if (failure) {
    undo();
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
  open_.open();
  flusher_.allow(this->library());
  if (capture_ranges_.are_paused() && CaptureRanges::instance().is_open()) open_capture_range_now();
  return std::nullopt;
}

std::optional<Failure> Session::start_tracing(const StartOptions& options) {
  const size_t buffer_bytes =
      options.journal.empty() ? options.buffer_bytes : std::min(options.buffer_bytes, kJournaledBufferBytes);
  const size_t num_buffers = options.max_buffers * (options.buffer_bytes / buffer_bytes);
  decode_thread_.prepare(buffer_bytes, static_cast<uint32_t>(std::min<size_t>(num_buffers, UINT32_MAX)));
  open_.count();
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
  annotator_.begin(of_whole_run ? kRecordedProgram : kProgram);
  annotations_.begin(!options.journal.empty(), options.journal_only, of_whole_run);
  graphs_.begin(options.journal_only);
  ranges_.begin(!options.journal.empty(), options.journal_only);
  peer_copies_ = records_peer_copies(options.kinds);
  begin_journal(options);
  if (options.journal_only && !flusher_.trouble().empty()) {
    return Failure{cupti::FailureKind::kCuptiCall, options.journal + " cannot be written (" + flusher_.trouble() + ")",
                   "Write to another place"};
  }
  budget_.begin(options.budget_millionths, options.budget_period_ns, options.kinds);
  decode_thread_.forget_written_rows(options.journal_only);
  decode_thread_.watch().begin(library(), options.watch);
  if (options.holder == Holder::kRecorder) subscription_.watch_calls(decode_thread_.watch().waits());
  decode_thread_.start(library());
  accepting_.store(true, std::memory_order_release);
  late_close_ns_.store(0, std::memory_order_relaxed);
  if (auto failure = capture_ranges_.begin(options)) return failure;
  return options.ranges.has_ranges() ? std::nullopt : subscription_.enable(options.kinds);
}

void Session::roll_back() {
  const bool has_recorded = subscription_.has_enabled();
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
  const int64_t since_ns = open_.cupti_now() - start_.cupti_ns;
  // Between ranges no nodes are recorded, and whole graphs are not to be either.
  if (lever == Lever::kGraphNodes && capture_ranges_.are_at_rest()) return false;
  if (lever == Lever::kGraphNodes && !subscription_.record_whole_graphs()) return false;
  if (lever == Lever::kNvtxRanges) annotator_.leave_out_ranges();
  if (lever == Lever::kApiCalls) annotator_.leave_out_launch_names();
  const std::vector<cupti::ActivityKind>& left_out = kinds_of(lever);
  subscription_.disable(left_out);
  capture_ranges_.leave_out(left_out);
  if (lever == Lever::kGraphNodes) capture_ranges_.add(cupti::ActivityKind::kGraphTrace);
  budget_.left_out(lever, since_ns);
  return true;
}

// --- Stop --------------------------------------------------------------------------------------------------------

void Session::flush_rest(int64_t deadline_ns, int64_t patience_ns) {
  flush_all_buffers(library(), *pools_.current(), open_.number(), deadline_ns, patience_ns);
}

std::optional<Capture> Session::stop(bool synchronize, int64_t timeout_ns, Holder holder) {
  if (!active()) return std::nullopt;
  const threads::NotCancelled not_cancelled;
  const threads::MutexLock lock(control_);
  if (!active() || holder_ != holder) return std::nullopt;  // another thread may have ended the session in the meantime
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
  Capture capture{};
  capture.own_calls.thread_id = threads::this_thread_id();
  library().clock().learn();
  capture.own_calls.from_ns = open_.cupti_now();
  const bool are_done = synchronize && cupti::synchronize_contexts(library().driver());
  end_collecting();
  capture.start = start_;
  capture.stop = read_clocks(library()).value_or(start_);

  // First the records of finished work; then, with all kinds disabled, all others.
  library().cupti().ActivityFlushAll(0);
  subscription_.disable();
  flush_rest(deadline, are_done ? kDeliveryWait : kIdleWait);
  flusher_.count_dropped(library());
  accepting_.store(false, std::memory_order_release);
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
  capture.counters["buffers_outstanding"] = pools_.current()->outstanding(open_.number());
  if (!are_done) capture.counters["work_not_awaited"] = 1;
  capture.counters["decode_cpu_ns"] = decode_thread_.cpu_ns();
  if (capture_ranges_.are_chosen()) capture.counters.merge(capture_ranges_.counts());
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
  state.buffers_held = static_cast<uint64_t>(pools_.current()->outstanding(open_.number()));
  return state;
}

std::string Session::callback_name(uint32_t domain, uint32_t callback_id) const {
  const cupti::Library* const library = open_.known_library();
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
    return JournalMark{
        journal_, flusher_.segment_number() + 1, *clocks, {threads::this_thread_id(), open_.cupti_now()}, {}, true, {}};
  }
  if (!library().has(Feature::kFlushingIsSafe)) return std::nullopt;
  if (wanted == Completeness::kAsIs && capture_ranges_.are_paused()) return std::nullopt;
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
  JournalMark mark{journal_, flusher_.segment_number(), {}, {threads::this_thread_id(), open_.cupti_now()}, {}, true,
                   {}};
  if (synchronize) cupti::synchronize_contexts(library().driver());
  const std::optional<Anchor> clocks = read_clocks(library());
  if (!clocks) return std::nullopt;
  mark.time = *clocks;
  const BufferPool* const pool = pools_.current();
  mark.held = pool->held(open_.number());
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
    flush_buffers(library(), FlushMode::kFinished, deadline, wanted == Completeness::kCut ? kUnfinishedWait : kIdleWait,
                  [&]() -> int64_t { return std::count_if(mark.held.begin(), mark.held.end(), is_out); });
  }
  flusher_.count_dropped(library());
  mark.is_up_to_date = decode_thread_.bring_journal_up_to_date(mark.held, deadline, wanted >= Completeness::kCut);
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
  note_late_close();
  capture_ranges_.open();
}

void Session::note_late_close() {
  if (const int64_t closed_ns = late_close_ns_.exchange(0); closed_ns != 0) capture_ranges_.close(closed_ns);
}

void Session::close_capture_range() {
  if (!active()) return;
  const threads::NotCancelled not_cancelled;
  const int64_t now = open_.cupti_now();
  if (!threads::lock_within(control_, threads::kPatience)) {
    late_close_ns_.store(now);
    return;
  }
  const threads::MutexLock lock(control_, std::adopt_lock);
  if (active()) capture_ranges_.close(now);
}

Session::Settling Session::settle_capture_range() {
  {
    if (!active()) return Settling::kOver;
    const threads::MutexLock lock(control_);
    if (!active()) return Settling::kOver;
    note_late_close();
    if (!capture_ranges_.is_settling()) return capture_ranges_.state();
  }
  decode_thread_.flush_soon();
  const std::optional<WatchedState> watched = watched_state();
  const threads::MutexLock lock(control_);
  return active() ? capture_ranges_.settle(watched) : Settling::kOver;
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

}  // namespace collector::capture
