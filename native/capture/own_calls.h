// The collector's own API calls, which are not part of the program's work.
#pragma once

#include <cstdint>

#include "store/store.h"

namespace collector::capture {

// The API calls of this thread that start at or after this time are the collector's own: the synchronisation at the end
// of a session. So are all calls of the decode thread, which asks for the names of the devices.
struct OwnCalls {
  uint32_t thread_id;
  int64_t from_ns;
  uint32_t decode_thread_id = 0;  // 0: it made no calls
};

// Removes these calls and their dependent rows from the store.
void remove_own_calls(store::Store& store, OwnCalls own);

}  // namespace collector::capture
