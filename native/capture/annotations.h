// The op names that a program puts around its launches, with their times, and the ids that tie launches to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/generated/kinds.h"
#include "threads/mutex.h"

namespace collector::capture {

// What happened to annotations since it was last asked.
struct AnnotationChanges {
  std::vector<store::AnnotationRow> opened;
  std::vector<std::string> paths;                    // of those
  std::vector<std::pair<uint64_t, int64_t>> closed;  // those reported before: the row's number, and its end_ns
  std::vector<std::string> details;
};

// Thread-safe. The lock is never held around a CUPTI call, and never taken in a CUPTI callback.
class AnnotationLog {
 public:
  // A new session: forgets all rows; ids never repeat, so that an annotation left open by an earlier session
  // cannot be taken for one of this. `follow`: somebody will ask for changes.
  void begin(bool follow);

  // Opens an annotation; the id to push to CUPTI.
  uint64_t open(std::string_view path, int64_t start_ns, uint32_t thread_id, uint16_t depth, uint32_t details_id);

  // Closes it; one of an earlier session is ignored.
  void close(uint64_t external_id, int64_t end_ns);

  // Notes the metadata of an annotation, where changes are followed; details_id counts these from 1.
  void note_details(std::string_view details);

  AnnotationChanges changes();

  // Ends the session at `end_ns`, which becomes the end of what is still open.
  std::vector<store::AnnotationRow> take(int64_t end_ns, std::vector<std::string>& paths);

 private:
  threads::Mutex mutex_;
  uint64_t session_ GUARDED_BY(mutex_) = 0;
  std::vector<store::AnnotationRow> rows_ GUARDED_BY(mutex_);
  std::vector<std::string> paths_ GUARDED_BY(mutex_);
  bool follow_ GUARDED_BY(mutex_) = false;
  size_t num_reported_ GUARDED_BY(mutex_) = 0;    // rows that changes() has returned
  AnnotationChanges changes_ GUARDED_BY(mutex_);  // closed and details alone; what was opened is in rows_
};

}  // namespace collector::capture
