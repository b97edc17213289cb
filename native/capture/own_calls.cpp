#include "capture/own_calls.h"

#include <unordered_set>

namespace collector::capture {

void remove_own_calls(store::Store& store, OwnCalls own) {
  std::unordered_set<uint32_t> correlations;
  store.rows.of<store::ApiCallRow>().remove_if([&](const store::ApiCallRow& row) {
    const bool is_own = (row.thread_id == own.thread_id && row.start_ns >= own.from_ns) ||
                        (own.decode_thread_id != 0 && row.thread_id == own.decode_thread_id);
    if (is_own) correlations.insert(row.correlation_id);
    return is_own;
  });
  const auto belongs = [&correlations](const auto& row) { return correlations.count(row.correlation_id) != 0; };
  store.rows.of<store::ExternalCorrelationRow>().remove_if(belongs);
  store.rows.of<store::SynchronizationRow>().remove_if(belongs);
}

}  // namespace collector::capture
