// The collector's own API calls, which are no work of the program's.
#pragma once

#include <cstdint>

#include "store/store.h"

namespace collector::capture {

// API calls of this thread that start at or after this time are the collector's: it synchronises at the end of a
// session.
struct OwnCalls {
  uint32_t thread_id;
  int64_t from_ns;
};

// Takes them out of the store, and what belongs to them.
void remove_own_calls(store::Store& store, OwnCalls own);

}  // namespace collector::capture
