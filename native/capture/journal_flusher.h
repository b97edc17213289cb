// Keeps the journal of a session up to date: writes what was decoded, and has CUPTI give back its records of work that
// has ended twice a second, so that this is all that a killed program loses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "capture/annotations.h"
#include "capture/journal.h"
#include "cupti/library.h"
#include "store/store.h"
#include "threads/mutex.h"

namespace collector::capture {

// The journal itself belongs to one thread at a time: to the decode thread while that runs, else to the session.
class JournalFlusher {
 public:
  // A session begins, which has no journal as yet.
  void reset();

  // Makes the journal's file and writes its first frame. Failures are the journal's trouble.
  void begin(const std::string& path, const cupti::Library& library, const std::map<std::string, std::string>& texts,
             const std::map<std::string, int64_t>& numbers);

  bool has_journal() const { return journal_ != nullptr; }

  // --- Called by the session. ---

  // From here on the library may be flushed.
  void allow(const cupti::Library& library) EXCLUDES(mutex_);
  // Once this returns no flush is under way, and none will begin.
  void forbid() EXCLUDES(mutex_);
  // Nothing more will be written. The file stays.
  void close();
  // Takes the file away.
  void remove();
  // What went wrong with the journal; empty: nothing, or there is none.
  std::string trouble() const;

  // --- Called by the decode thread. ---

  // The first flush is due a period from now.
  void start_period();
  // When the next flush is due, on CLOCK_MONOTONIC.
  int64_t next_flush_ns() const { return next_flush_ns_; }
  // Flushes the library if it is time, which makes it complete its buffers.
  void flush_if_due() EXCLUDES(mutex_);
  // Writes what was added since the last call.
  void append(const store::Store& store, AnnotationLog& annotations, const std::map<std::string, int64_t>& numbers);
  // Ends the journal early: what is in the file stays, and trouble() says why no more came.
  void give_up(const std::string& why);

 private:
  std::unique_ptr<Journal> journal_;
  int64_t next_flush_ns_ = 0;
  threads::Mutex mutex_;  // never taken in a CUPTI callback
  const cupti::Library* flushed_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace collector::capture
