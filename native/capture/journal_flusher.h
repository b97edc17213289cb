// Keeps the journal of a session up to date: twice a second it writes the decoded rows and has CUPTI return the records
// of finished work. A killed program loses no more than that period, and the buffers that CUPTI keeps because a record
// in them is unfinished.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "capture/annotations.h"
#include "capture/journal_segments.h"
#include "capture/range_log.h"
#include "cupti/library.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

// The journal belongs to one thread at a time: to the decode thread while it runs, otherwise to the session.
class JournalFlusher {
 public:
  // Begins a session, which has no journal yet.
  void reset();

  // Creates the journal's file and writes its first frame. Failures are reported by trouble().
  void begin(const std::string& path, const SegmentLimits& limits, const cupti::Library& library,
             const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers);

  bool has_journal() const { return journal_ != nullptr; }
  // Whether rows could not be written. Any thread may ask.
  bool is_broken() const { return is_broken_.load(std::memory_order_relaxed); }
  // The number of the segment that is written; 0: the journal is one file. Any thread may ask while a session is open.
  uint32_t segment_number() const { return journal_ ? journal_->segment_number() : 0; }

  // Lets the next flush be due. Any thread may call it.
  void hasten() noexcept { is_hastened_.store(true, std::memory_order_release); }
  // The records that CUPTI has dropped in the session, as far as they were taken from its count, which begins again
  // then. Any thread may ask.
  uint64_t records_dropped() const noexcept { return records_dropped_.load(std::memory_order_acquire); }
  // The flushes of the library that have begun. Any thread may ask.
  uint64_t flushes() const noexcept { return flushes_.load(std::memory_order_acquire); }

  // --- Called by the session. ---

  // From this call on the library may be flushed.
  void allow(const cupti::Library& library) EXCLUDES(mutex_);
  // After this call returns no flush is running and none will begin.
  void forbid() EXCLUDES(mutex_);
  // The same, unless a flush goes on for longer than a program should wait in its exit.
  void forbid_at_exit() EXCLUDES(mutex_);
  // Takes the number of dropped records from CUPTI, as each flush does.
  void count_dropped(const cupti::Library& library) EXCLUDES(mutex_);
  // The same, unless a flush is running, which takes it.
  void count_dropped_unless_flushing(const cupti::Library& library) EXCLUDES(mutex_);
  // Writes the last frame: the session has ended, and all its rows are written.
  void finish(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers);
  // Ends writing. The file stays.
  void close();
  // Deletes the file.
  void remove();
  // The cause of the journal's failure; empty if there is no failure or no journal.
  std::string trouble() const;

  // --- Called by the decode thread. ---

  // Schedules the first flush one period from now.
  void start_period();
  // The time of the next flush, on CLOCK_MONOTONIC.
  int64_t next_flush_ns() const { return next_flush_ns_; }
  // Flushes the library if a flush is due, so that it completes its buffers; returns whether one was.
  bool flush_if_due() EXCLUDES(mutex_);
  // Writes the rows and texts added since the last call.
  void append(const store::Store& store, AnnotationLog& annotations, const OpenRangeChanges& ranges,
              const std::map<std::string, int64_t>& numbers);
  // The rows written so far have been removed from the store.
  void forget_rows();
  // Removes the texts of the store, which has no rows.
  void forget_names(store::Store& store);
  // States facts that were not known at the begin.
  void state(const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers);
  // Begins a new segment, now or if one is due. The store's rows are written and forgotten. `num_held`: of the buffers
  // that had not come back, whose rows are in a later one.
  void cut(store::Store& store, AnnotationLog& annotations, size_t num_held);
  void cut_if_due(store::Store& store, AnnotationLog& annotations);
  // Ends the journal early: the frames already written stay, and trouble() contains the reason.
  void give_up(const std::string& why);

 private:
  void note_trouble();
  void take_num_dropped(const cupti::Library& library) REQUIRES(mutex_);

  std::unique_ptr<JournalSegments> journal_;
  std::atomic<bool> is_broken_{false};
  int64_t next_flush_ns_ = 0;
  std::atomic<bool> is_hastened_{false};
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> records_dropped_{0};
  threads::Mutex mutex_;  // never taken in a CUPTI callback
  const cupti::Library* flushed_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace collector::capture
