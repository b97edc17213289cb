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
// * Annotator: any thread of the program; it takes only the locks of the logs.
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
#include "capture/annotator.h"
#include "capture/budget.h"
#include "capture/buffer_pools.h"
#include "capture/capture_ranges.h"
#include "capture/decode_thread.h"
#include "capture/graph_log.h"
#include "capture/journal_flusher.h"
#include "capture/open_session.h"
#include "capture/own_calls.h"
#include "capture/range_log.h"
#include "capture/range_selection.h"
#include "capture/recorded_ranges.h"
#include "capture/start_options.h"
#include "capture/subscription.h"
#include "cupti/library.h"
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
  // Whether the rows that the mark promises were written in time; otherwise they come later, in the segment of the mark
  // or behind it.
  bool is_up_to_date = true;
};

// An open session, for code that did not open it.
struct SessionState {
  Holder holder;
  std::string journal;
  std::string trouble;  // of the journal
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

  // See RecordedRanges::settle.
  using Settling = RecordedRanges::Settling;
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

  bool active() const { return open_.active(); }
  // Whether NVTX ranges are to be reported.
  bool follows_ranges() const { return active() || CaptureRanges::watches_nvtx(); }
  // Whether a session is open in which CUPTI has not requested a buffer yet, i.e. nothing was recorded.
  bool idle() const { return active() && pools_.current()->requested() == 0; }

  // What the program's threads annotate their launches with.
  Annotator& annotator() { return annotator_; }

  // The library of the open or the last session; null before the first one, and in a forked child.
  const cupti::Library* known_library() const { return cupti::out_of_use() ? nullptr : open_.known_library(); }

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
  Session();

  static void on_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) noexcept;
  static void on_callback(void* user, uint32_t domain, uint32_t callback_id, const void* data) noexcept;
  static void on_profiler_call(bool is_runtime, uint32_t callback_id, uint32_t site) noexcept;
  void on_resource(uint32_t callback_id, const void* data) noexcept;
  static void on_buffer_completed(void* context, uint32_t stream, uint8_t* data, size_t bytes, size_t valid) noexcept;

  const cupti::Library& library() const { return open_.library(); }
  std::optional<cupti::Failure> start_tracing(const StartOptions& options) REQUIRES(control_);
  // The begin and the end of a range, in a session that records only ranges (capture_ranges.h). Threads of the program
  // call them, also in callbacks of CUPTI about API calls, where NVIDIA's samples enable and disable kinds, too. They
  // do not wait for ever for the session.
  void open_capture_range();
  void close_capture_range();
  void open_capture_range_now() REQUIRES(control_);
  // Notes the end of a range that could not be noted then.
  void note_late_close() REQUIRES(control_);
  void begin_journal(const StartOptions& options) REQUIRES(control_);
  void finish_journal(const Capture& capture) REQUIRES(control_);
  void roll_back() REQUIRES(control_);
  void end_collecting() REQUIRES(control_);
  // Ends the session as its options say, and lets nothing of ours call libcupti, whose destructors run next.
  static void leave_at_exit();
  // Has CUPTI complete all buffers of the session, and waits for them.
  void flush_rest(int64_t deadline_ns, int64_t patience_ns) REQUIRES(control_);
  // Called by the decode thread, which `stop` waits for while it holds control_.
  static bool leave_out(Lever lever);
  bool try_leave_out(Lever lever) REQUIRES(control_);

  threads::Mutex control_;
  OpenSession open_;
  std::atomic<bool> accepting_{false};  // whether callbacks hand out buffers
  std::atomic<bool> may_decline_{false};
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

  std::atomic<int64_t> late_close_ns_{0};  // on CUPTI's clock: the end of a range that could not be noted then

  BufferPools& pools_ = *new BufferPools();
  AnnotationLog annotations_;
  GraphLog graphs_;
  RangeLog ranges_;
  JournalFlusher flusher_;
  Budget budget_;
  Annotator& annotator_ = *new Annotator(open_, annotations_, ranges_, budget_);
  DecodeThread decode_thread_{pools_, annotations_, graphs_, ranges_, flusher_, budget_, leave_out};
  RecordedRanges capture_ranges_ GUARDED_BY(control_){open_, subscription_, pools_, flusher_, decode_thread_};
};

}  // namespace collector::capture
