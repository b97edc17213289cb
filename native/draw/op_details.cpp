#include "draw/op_details.h"

#include <algorithm>

namespace collector::draw {

const OpDetails::Arguments* OpDetails::of(int64_t start_ns, int64_t duration_ns, uint32_t thread_id) const {
  auto run = std::lower_bound(runs.begin(), runs.end(), start_ns,
                              [](const Run& each, int64_t wanted_ns) { return each.start_ns < wanted_ns; });
  for (; run != runs.end() && run->start_ns == start_ns; ++run) {
    if (run->duration_ns == duration_ns && run->thread_id == thread_id && run->details < arguments.size()) {
      return &arguments[run->details];
    }
  }
  return nullptr;
}

}  // namespace collector::draw
