#include "capture/buffer_flush.h"

namespace collector::capture {

// A forced flush also ends the records of unfinished work of other subscribers, who get no other record of it.
void flush_all_buffers(const cupti::Library& library, const BufferPool& pool, uint32_t session, int64_t deadline_ns,
                       int64_t patience_ns) {
  const auto count_missing = [&pool, session] { return pool.outstanding(session); };
  if (library.activity_api().subscriber() != nullptr) {
    flush_buffers(library, FlushMode::kFinished, deadline_ns, kIdleWait, count_missing);
    if (count_missing() == 0) return;
  }
  flush_buffers(library, FlushMode::kForced, deadline_ns, patience_ns, count_missing);
}

}  // namespace collector::capture
