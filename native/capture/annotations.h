// The op names that a program puts around its launches, with their times, and the ids that tie launches to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "store/rows.h"

namespace collector::capture {

// Thread-safe. The lock is never held around a CUPTI call, and never taken in a CUPTI callback.
class AnnotationLog {
 public:
  // A new session: forgets all rows; ids never repeat, so that an annotation left open by an earlier session
  // cannot be taken for one of this.
  void begin();

  // Opens an annotation; the id to push to CUPTI.
  uint64_t open(std::string_view path, int64_t start_ns, uint32_t thread_id, uint16_t depth, uint32_t details_id);

  // Closes it; one of an earlier session is ignored.
  void close(uint64_t external_id, int64_t end_ns);

  // Ends the session at `end_ns`, which becomes the end of what is still open.
  std::vector<store::AnnotationRow> take(int64_t end_ns, std::vector<std::string>& paths);

 private:
  std::mutex mutex_;
  uint64_t session_ = 0;
  std::vector<store::AnnotationRow> rows_;
  std::vector<std::string> paths_;
};

}  // namespace collector::capture
