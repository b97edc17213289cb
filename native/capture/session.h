// The only CUPTI client of this process: a session from its start to decoded rows.
//
// Threads, and the actions that each may take:
// * CUPTI's callbacks (any thread, with CUPTI's lock held): BufferPool::acquire and DecodeThread::complete. Nothing
//   else: no allocation, no lock, no CUDA, no CUPTI, no Python. A lock that is taken in a callback and also held around
//   a CUPTI call elsewhere is the deadlock in the issues of Kineto and PyTorch (pytorch#186295).
// * the decode thread (decode_thread.h): holds no lock while it decodes. With a journal it also flushes CUPTI
//   periodically and takes its count of dropped records, under a lock of JournalFlusher that no callback takes. With a
//   budget it disables kinds, under control_ if that is free.
// * start, stop, abort: serialised by control_, which is held around CUPTI calls and never taken in a callback.
// * push_annotation, pop_annotation, push_range, pop_range: any thread of the program; they take only AnnotationLog's
//   lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/anchor.h"
#include "capture/annotations.h"
#include "capture/budget.h"
#include "capture/buffer_pools.h"
#include "capture/capture_ranges.h"
#include "capture/decode_thread.h"
#include "capture/graph_log.h"
#include "capture/journal_flusher.h"
#include "capture/open_annotations.h"
#include "capture/own_calls.h"
#include "capture/range_log.h"
#include "capture/range_selection.h"
#include "capture/start_options.h"
#include "capture/subscription.h"
#include "cupti/library.h"
#include "cupti/process_use.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

// A finished session. It owns its rows: another session may begin while they are read.
struct Capture {
  const cupti::Library* library;
  DecodeThread::LentStore store;
  std::vector<store::AnnotationRow> annotations;
  std::vector<std::string> annotation_paths;
  Anchor start;
  Anchor stop;
  std::map<std::string, int64_t> counters;
  std::vector<cupti::Device> devices;
  bool shared_subscription;
  std::optional<bool> peer_copies;  // whether copies between GPUs were recorded; no value: no copies were
  std::string first_subscriber;     // the name of the first of several clients of CUPTI; empty if there is no other
  OwnCalls own_calls;

  // The largest difference between wall times and CUPTI times.
  int64_t uncertainty_ns() const { return std::max(start.uncertainty_ns, stop.uncertainty_ns); }
};

// An instant of a session that `collector run` or `collector.record` has opened, whose journal has all finished work up
// to then.
struct JournalMark {
  std::string journal;
  uint32_t segment;  // the number of the one that is written; 0: the journal is one file
  Anchor time;
  OwnCalls own_calls;
  // The buffers that had records by then and are not in the journal, because CUPTI holds them back: work in them has
  // not ended.
  std::vector<HeldBuffer> held;
  // Whether all calls are recorded, which are in a buffer as soon as they return. The place of a kernel in its buffer
  // may be empty until it has ended.
  bool has_calls;
  // The losses up to then (DecodeThread::losses).
  std::map<std::string, int64_t> losses;
};

// An open session, for code that did not open it.
struct SessionState {
  Holder holder;
  std::string journal;
  std::string trouble;  // of the journal
};

// The annotations of one thread, and its graphs.
struct ThreadAnnotations {
  ThreadAnnotations() noexcept;
  ThreadAnnotations(const ThreadAnnotations&) = delete;
  ThreadAnnotations& operator=(const ThreadAnnotations&) = delete;
  ~ThreadAnnotations();

  OpenAnnotations open;
  PathCache paths;
  InlinedGraphs inlined;
  uint32_t session = 0;  // its number when an annotation was last opened or closed here
  const uint32_t thread_id;
};

class Session {
 public:
  // Created by the first call and never destroyed: CUPTI may call back until the process ends.
  static Session& instance();

  std::optional<cupti::Failure> start(const StartOptions& options);

  // Ends the session; does nothing if none is open. `synchronize` waits for the GPU first, so that all work launched in
  // the session is recorded. Waits at most `timeout_ns` for CUPTI to return its buffers.
  // Only the holder ends it.
  std::optional<Capture> stop(bool synchronize, int64_t timeout_ns, Holder holder = Holder::kCaller);

  // How much of the work up to a mark is in the journal.
  enum class Completeness : uint8_t {
    kAsIs,      // what has come back by itself
    kComplete,  // all finished work
    kCut,       // and it is in closed segments
    kRunning,   // and so is the work that is running: CUPTI hands it out once, without its end
  };

  // The present instant of a session that an injection or a recorder holds; no value if there is none, or if its
  // library cannot be flushed safely. `synchronize`: as `stop`, it waits for the GPU first. A journal that broke off is
  // handed out only for a cut, with all that it has.
  std::optional<JournalMark> mark(Completeness wanted, bool synchronize, int64_t timeout_ns);

  // The present instant of an open session, whoever holds it; no value if there is none.
  std::optional<Anchor> instant() const;

  // Who holds the open session; no value if there is none.
  std::optional<SessionState> state();

  // States facts in the journal of an open session.
  void note_facts(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers);

  // The begin and the end of a range, in a session that records only ranges (capture_ranges.h). Threads of the program
  // call them, also in callbacks of CUPTI about API calls, where NVIDIA's samples enable and disable kinds, too. They
  // do not wait for ever for the session.
  void open_capture_range();
  void close_capture_range();

  // Disables the kinds of activity after the end of a range, once its work has finished or did not for long. Returns
  // whether to call it again; `kOver`: no further range will be recorded.
  enum class Settling : uint8_t { kSettled, kWaiting, kOver };
  Settling settle_capture_range();

  // Names that journals state; they must stay.
  void set_stated_names(const StatedNames* names) { decode_thread_.set_stated_names(names); }
  // What reports the NVTX ranges, and is to report only those that a session has selected.
  void set_select_ranges(SelectRanges select) { select_ranges_.store(select, std::memory_order_release); }

  // What is known of the launches of a session that is watched; no value if none is open.
  std::optional<WatchedState> watched_state();
  // The name of an API function in the library of the last session.
  std::string callback_name(uint32_t domain, uint32_t callback_id) const;
  // Whether rows of the session cannot be written any more.
  bool is_journal_broken() const { return flusher_.is_broken(); }

  // Ends the program's session and discards its records, without waiting for the GPU. For the exit of the interpreter.
  void abort();

  // Whether NVTX ranges are to be reported.
  bool follows_ranges() const { return active() || CaptureRanges::watches_nvtx(); }

  bool active() const { return collecting_.load(std::memory_order_acquire) && !cupti::out_of_use(); }
  // Whether a session is open in which CUPTI has not requested a buffer yet, i.e. nothing was recorded.
  bool idle() const { return active() && pools_.current()->requested() == 0; }

  // Attaches `path` to every launch of this thread until the matching pop. Has no effect while no session is open, or
  // one that the owner is not for: kProgram is for sessions of the program, kRecordedProgram for those of others.
  // `path` is complete but for the ranges around it.
  //
  // `block` is the number of the block that is entered or goes on, 0: unknown. NVTX ranges that were opened in the
  // block name nothing while another task of the thread goes on, for which it is popped with `is_over` false.
  void push_annotation(Owner owner, std::string_view path, uint32_t details_id = 0, uint64_t block = 0);
  void pop_annotation(Owner owner, bool is_over);

  // The same for a range of another owner, an NVTX domain, by its own name. Owners need not nest: a range that ends
  // inside those of others leaves them open. Both return the number of the owner's other open ranges in this thread, or
  // kNotTracked: no session is open, or none of the owner's ranges is open in it.
  static constexpr int kNotTracked = -2;
  int push_range(Owner owner, const RangeTexts& texts);
  int pop_range(Owner owner);

  // Marks, and ranges that begin in one place and end in another. The id of a range is 0 if it is not recorded.
  void mark(const RangeTexts& texts);
  uint64_t start_range(const RangeTexts& texts);
  bool end_range(uint64_t id);

  // The library of the open or the last session; null before the first one, and in a forked child.
  const cupti::Library* known_library() const {
    return cupti::out_of_use() ? nullptr : library_.load(std::memory_order_acquire);
  }

  // Closes the annotations of a thread that ends.
  void leave_thread(OpenAnnotations& open) noexcept;

  // Stores the metadata of annotations, in the order of their numbers. Only the journal uses it.
  void note_details(std::string_view details);
  // The same for the annotations of a process that `collector run` records, also before its session begins.
  void note_run_details(std::string_view details);

  // The cause of the failure of the last session's journal; empty if there is no failure or no journal. Must not be
  // called while a session is open.
  std::string journal_trouble();
  // Deletes the last session's journal.
  void remove_journal();

 private:
  Session() = default;

  static void on_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) noexcept;
  static void on_callback(void* user, uint32_t domain, uint32_t callback_id, const void* data) noexcept;
  static void on_profiler_call(bool is_runtime, uint32_t callback_id, uint32_t site) noexcept;
  void on_resource(uint32_t callback_id, const void* data) noexcept;
  static void on_buffer_completed(void* context, uint32_t stream, uint8_t* data, size_t bytes, size_t valid) noexcept;

  const cupti::Library& library() const { return *library_.load(std::memory_order_acquire); }
  std::optional<cupti::Failure> start_tracing(const StartOptions& options) REQUIRES(control_);
  std::optional<cupti::Failure> start_capture_ranges(const StartOptions& options) REQUIRES(control_);
  void open_capture_range_now() REQUIRES(control_);
  bool enable_range_kinds() REQUIRES(control_);
  void close_capture_range_at(int64_t cupti_ns) REQUIRES(control_);
  void state_capture_ranges(const std::map<std::string, int64_t>& bounds) REQUIRES(control_);
  void begin_journal(const StartOptions& options) REQUIRES(control_);
  void finish_journal(const Capture& capture) REQUIRES(control_);
  void roll_back() REQUIRES(control_);
  void end_collecting() REQUIRES(control_);
  // Ends the session as its options say, and lets nothing of ours call libcupti, whose destructors run next.
  static void leave_at_exit();
  // Whether all work of the devices is done: no wait has failed.
  bool synchronize_contexts() const;
  // Has CUPTI complete its buffers, and waits for those that are missing until the deadline at most, or until none of
  // them has come back for `patience_ns`. Unless `forced`, CUPTI keeps the buffers in which a record is unfinished.
  template <typename CountMissing>
  void flush(uint32_t forced, int64_t deadline_ns, int64_t patience_ns, CountMissing count_missing) REQUIRES(control_);
  // The same for all buffers, also those with unfinished records.
  void flush_rest(int64_t deadline_ns, int64_t patience_ns) REQUIRES(control_);
  void push(ThreadAnnotations& thread, Owner owner, const Place& place, uint32_t details_id,
            const RangeTexts* range = nullptr);
  // `suspends`: the ranges inside the entry name nothing until its block goes on.
  void pop(OpenAnnotations& open, size_t index, bool suspends = false);
  // Gives CUPTI the id of an entry, if it names launches.
  void push_id(OpenAnnotation& entry);
  int pop_recorded_range(Owner owner);
  uint64_t start_recorded_range(const RangeTexts& texts);
  void forget_ranges_of_earlier_sessions(ThreadAnnotations& thread);
  // Called by the decode thread, which `stop` waits for while it holds control_.
  static bool leave_out(Lever lever);
  bool try_leave_out(Lever lever) REQUIRES(control_);
  int64_t cupti_now() const;

  threads::Mutex control_;
  std::atomic<bool> collecting_{false};
  std::atomic<bool> accepting_{false};  // whether callbacks hand out buffers
  std::atomic<bool> may_decline_{false};
  std::atomic<bool> has_launch_names_{true};  // whether CUPTI still records the ids of annotations
  std::atomic<bool> has_ranges_{true};        // whether NVTX ranges are still recorded
  std::atomic<Owner> program_{kProgram};      // whose annotations are recorded
  std::atomic<uint32_t> number_{0};           // of the open or the last session; stored with each buffer
  std::atomic<const cupti::Library*> library_{nullptr};
  // Never shrinks, because an annotation may be using any of them.
  std::vector<std::shared_ptr<const cupti::Library>> libraries_ GUARDED_BY(control_);
  Subscription subscription_ GUARDED_BY(control_);
  Anchor start_ GUARDED_BY(control_){};
  Holder holder_ GUARDED_BY(control_) = Holder::kCaller;
  std::atomic<void (*)()> end_at_exit_{nullptr};
  std::atomic<SelectRanges> select_ranges_{nullptr};
  const cupti::Library* left_at_exit_ GUARDED_BY(control_) = nullptr;  // the one for which leave_at_exit is registered
  std::optional<bool> peer_copies_ GUARDED_BY(control_);               // see Capture
  std::string journal_ GUARDED_BY(control_);                           // its path

  // Of a session that records only ranges.
  struct RecordedRanges {
    CaptureRangeOptions options;
    std::vector<cupti::ActivityKind> work_kinds;  // those that are enabled for a range
    uint32_t recorded = 0;
    bool is_open = false;
    bool has_kinds = false;          // whether they are enabled
    int64_t closed_ns = 0;           // on CLOCK_MONOTONIC
    uint64_t flushes = 0;            // up to then
    uint64_t buffers_requested = 0;  // likewise

    // Whether the last range that is recorded has ended.
    bool is_over() const { return !is_open && recorded >= options.most; }
    // Whether work of a range that has ended is recorded still.
    bool is_settling() const { return !is_open && has_kinds; }
  };
  RecordedRanges capture_ranges_ GUARDED_BY(control_);
  std::atomic<int64_t> late_close_ns_{0};  // on CUPTI's clock: the end of a range that could not be noted then
  std::atomic<bool> is_paused_{false};     // whether only ranges are recorded, and none is open

  BufferPools& pools_ = *new BufferPools();
  AnnotationLog annotations_;
  GraphLog graphs_;
  RangeLog ranges_;
  JournalFlusher flusher_;
  Budget budget_;
  DecodeThread decode_thread_{pools_, annotations_, graphs_, ranges_, flusher_, budget_, leave_out};
};

}  // namespace collector::capture
