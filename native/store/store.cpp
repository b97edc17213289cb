#include "store/store.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace collector::store {
namespace {

// Less-than of each kind of row. Where rows have no order of their own they stay as they came.
template <typename Row>
bool on_a_stream_before(const Row& a, const Row& b) {
  return std::tie(a.start_ns, a.end_ns, a.correlation_id, a.graph_node_id) <
         std::tie(b.start_ns, b.end_ns, b.correlation_id, b.graph_node_id);
}

bool before(const KernelRow& a, const KernelRow& b) { return on_a_stream_before(a, b); }
bool before(const MemcpyRow& a, const MemcpyRow& b) { return on_a_stream_before(a, b); }
bool before(const MemsetRow& a, const MemsetRow& b) { return on_a_stream_before(a, b); }

bool before(const ApiCallRow& a, const ApiCallRow& b) {
  // Of two calls that start together the longer one encloses the other.
  return std::tie(a.start_ns, b.end_ns, a.thread_id, a.correlation_id) <
         std::tie(b.start_ns, a.end_ns, b.thread_id, b.correlation_id);
}

bool before(const ExternalCorrelationRow& a, const ExternalCorrelationRow& b) {
  return std::tie(a.correlation_id, a.external_id) < std::tie(b.correlation_id, b.external_id);
}

bool before(const SynchronizationRow& a, const SynchronizationRow& b) {
  return std::tie(a.context_id, a.stream_id, a.start_ns, a.end_ns, a.correlation_id) <
         std::tie(b.context_id, b.stream_id, b.start_ns, b.end_ns, b.correlation_id);
}

bool before(const OverheadRow& a, const OverheadRow& b) {
  return std::tie(a.device_id, a.context_id, a.stream_id, a.start_ns, a.end_ns, a.thread_id, a.correlation_id) <
         std::tie(b.device_id, b.context_id, b.stream_id, b.start_ns, b.end_ns, b.thread_id, b.correlation_id);
}

bool before(const MemoryOperationRow& a, const MemoryOperationRow& b) {
  return std::tie(a.start_ns, a.device_id, a.context_id, a.stream_id, a.correlation_id) <
         std::tie(b.start_ns, b.device_id, b.context_id, b.stream_id, b.correlation_id);
}

template <typename Row>
void sort_rows(Chunks<Row>& rows) {
  bool sorted = true;
  for (size_t i = 1; i < rows.size() && sorted; ++i) sorted = !before(rows[i], rows[i - 1]);
  if (sorted) return;
  // Numbers are sorted and rows moved once, each to its place: a sorted copy would be as large as the rows again.
  std::vector<uint32_t> from(rows.size());
  std::iota(from.begin(), from.end(), 0);
  std::sort(from.begin(), from.end(), [&rows](uint32_t a, uint32_t b) {
    if (before(rows[a], rows[b])) return true;
    return !before(rows[b], rows[a]) && a < b;
  });
  for (uint32_t first = 0; first < from.size(); ++first) {
    if (from[first] == first) continue;
    const Row moved = rows[first];
    uint32_t to = first;
    while (from[to] != first) {
      rows[to] = rows[from[to]];
      to = std::exchange(from[to], to);
    }
    rows[to] = moved;
    from[to] = to;
  }
}

}  // namespace

Stream& Store::find_stream(StreamKey key) {
  last_ = &streams_.try_emplace(key, key, blocks_).first->second;
  return *last_;
}

void Store::sort() {
  for (auto& entry : streams_) {
    sort_rows(entry.second.kernels);
    sort_rows(entry.second.memcpys);
    sort_rows(entry.second.memsets);
  }
  sort_rows(api_calls);
  sort_rows(external_correlations);
  sort_rows(synchronizations);
  sort_rows(overheads);
  sort_rows(memory_operations);
}

void Store::clear() {
  streams_.clear();
  last_ = nullptr;
  api_calls.clear();
  external_correlations.clear();
  synchronizations.clear();
  overheads.clear();
  memory_operations.clear();
  strings.clear();
}

}  // namespace collector::store
