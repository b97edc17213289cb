// Annotations: the op names that a program puts around its launches, their times, and the ids that link launches to
// them.
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

// The changes to annotations since the last call of changes().
struct AnnotationChanges {
  std::vector<store::AnnotationRow> opened;
  std::vector<std::string> paths;                    // of the opened annotations
  std::vector<std::pair<uint64_t, int64_t>> closed;  // row and end_ns of annotations that an earlier call reported
  std::vector<std::string> details;
};

// Thread-safe. The lock is never held around a CUPTI call, and never taken in a CUPTI callback.
class AnnotationLog {
 public:
  // Begins a new session and forgets all rows. Ids never repeat, so that an annotation left open by an earlier session
  // cannot be mistaken for one of this session. `follow`: changes() will be called.
  void begin(bool follow);

  // Opens an annotation and returns the id to push to CUPTI.
  uint64_t open(std::string_view path, int64_t start_ns, uint32_t thread_id, uint16_t depth, uint32_t details_id);

  // Closes an annotation; an annotation of an earlier session is ignored.
  void close(uint64_t external_id, int64_t end_ns);

  // Stores the metadata of an annotation if changes are followed; details_id counts these from 1.
  void note_details(std::string_view details);

  AnnotationChanges changes();

  // Ends the session at `end_ns`, which becomes the end of annotations that are still open.
  std::vector<store::AnnotationRow> take(int64_t end_ns, std::vector<std::string>& paths);

 private:
  threads::Mutex mutex_;
  uint64_t session_ GUARDED_BY(mutex_) = 0;
  std::vector<store::AnnotationRow> rows_ GUARDED_BY(mutex_);
  std::vector<std::string> paths_ GUARDED_BY(mutex_);
  bool follow_ GUARDED_BY(mutex_) = false;
  size_t num_reported_ GUARDED_BY(mutex_) = 0;    // rows that changes() has already returned
  AnnotationChanges changes_ GUARDED_BY(mutex_);  // only `closed` and `details`; opened annotations are in rows_
};

}  // namespace collector::capture
